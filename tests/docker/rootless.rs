//! Podman as a person who is not root, as most have it.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use abide_model::container::{EngineKind, Network};
use abide_model::ladder::{PlaceSight, Tier};
use abide_places::place::TakeDown;
use abide_testkit::{Sandbox, require_containers};
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::{Connection, GetStatus};

use crate::contained::{Contained, is_again, run};

const LONG: std::time::Duration = std::time::Duration::from_secs(30);

/// A person that only the test's own view of the user database has.
const PERSON: u32 = 54321;

/// What makes the person: their entries are seen by this process and its children only.
const AS_PERSON: &str = r#"for file in passwd group subuid subgid; do mount --bind "$0/$file" "/etc/$file"; done
exec setpriv --reuid 54321 --regid 54321 --clear-groups "$@""#;

#[test]
fn files_of_a_container_belong_to_the_person_who_runs_podman() {
    let run = require_containers();
    if is_again() {
        return a_person_has_a_container();
    }
    let mut sandbox = Sandbox::new("unused");
    let etc = |name: &str| std::fs::read_to_string(Path::new("/etc").join(name)).unwrap_or_default();
    let home = sandbox.path("home");
    let passwd = format!("{}person:x:{PERSON}:{PERSON}::{}:/bin/sh\n", etc("passwd"), home.display());
    sandbox.write("etc/passwd", passwd);
    sandbox.write("etc/group", format!("{}person:x:{PERSON}:\n", etc("group")));
    for name in ["subuid", "subgid"] {
        sandbox.write(Path::new("etc").join(name), "person:1000000:65536\n");
    }
    let storage = format!(
        "[storage]\ndriver = \"overlay\"\ngraphroot = \"{0}/graph\"\nrunroot = \"{0}/run\"\n",
        home.display()
    );
    let storage = sandbox.write("home/storage.conf", storage);
    sandbox.set("CONTAINERS_STORAGE_CONF", storage);
    // The settings of this run, but for the networks, which are root's there.
    let settings = std::env::var_os("CONTAINERS_CONF").map(|file| std::fs::read_to_string(file).unwrap());
    let settings = settings.as_deref().unwrap_or_default().split("[network]").next().unwrap_or_default();
    let networks = home.join("networks");
    let settings = format!("{settings}[network]\nnetwork_config_dir = \"{}\"\n", networks.display());
    let settings = sandbox.write("home/containers.conf", settings);
    sandbox.set("CONTAINERS_CONF", settings);
    sandbox.set("ABIDE_TEST_CONTAINERS", run);
    std::fs::set_permissions(sandbox.path(""), std::fs::Permissions::from_mode(0o711)).unwrap();
    for part in ["home", "runtime", "tmp", "work"] {
        give(&sandbox.path(part));
    }
    let test = "rootless::files_of_a_container_belong_to_the_person_who_runs_podman";
    let mut command = sandbox.command("unshare");
    command.args(["--mount", "sh", "-ec", AS_PERSON]).arg(sandbox.path("etc"));
    command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
    let out = command.env("ABIDE_TEST_AGAIN", "1").output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(out.status.success(), "{}{}", text(&out.stdout), text(&out.stderr));
    assert!(text(&out.stdout).contains("1 passed"), "{}", text(&out.stdout));
}

fn give(dir: &Path) {
    std::os::unix::fs::lchown(dir, Some(PERSON), Some(PERSON)).unwrap();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        give(&entry.path());
    }
}

fn a_person_has_a_container() {
    let empty = tempfile::tempdir().unwrap();
    let archive = empty.path().join("empty.tar");
    assert!(
        Command::new("tar").arg("-cf").arg(&archive).args(["-T", "/dev/null"]).status().unwrap().success()
    );
    // Nothing is in it: process 1 needs nothing.
    let id = run(EngineKind::Podman, &["import", "--quiet", archive.to_str().unwrap()]).ok();
    let mut it = Contained::from_image(EngineKind::Podman, id.trim());
    it.recipe().network = Network::None;
    it.up(Tier::Recreate);
    let mut capsule = Connection::connect(&InstanceDir::new(it.dir()), LONG).unwrap();
    assert_eq!(capsule.call(&GetStatus {}, LONG).unwrap().sessions.len(), 0);
    for made in ["run/sock", "state/exit.json"] {
        let file = it.dir().join(made).symlink_metadata().unwrap();
        assert_eq!((file.uid(), file.gid()), (PERSON, PERSON), "{made}");
    }
    it.down(TakeDown::Stop);
    assert!(matches!(it.look(), PlaceSight::Stopped(_)), "{:?}", it.look());
    it.up(Tier::Start);
    drop(it);
    // Ends the process that holds the person's namespaces.
    run(EngineKind::Podman, &["system", "migrate"]).ok();
}
