use abide_model::SessionId;
use tempfile::TempDir;

use super::*;

const ID: &str = "aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa";

/// An agent's directory with one transcript in it, and a unit.
struct Kept {
    root: TempDir,
    agent: &'static dyn Agent,
    transcript: PathBuf,
}

impl Kept {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let transcript = root.path().canonicalize().unwrap().join("config/projects/p/t.jsonl");
        fs::create_dir_all(transcript.parent().unwrap()).unwrap();
        fs::write(&transcript, "one\n").unwrap();
        Self { root, agent: abide_agents::agent("claude").unwrap(), transcript }
    }

    fn vault(&self) -> Vault<'_> {
        let (unit, config) = (self.root.path().join("unit"), self.root.path().join("config"));
        Vault::of(&unit, SessionId(1), self.agent, &config, ID).unwrap()
    }

    fn restore(&self) -> bool {
        self.vault().restore(self.root.path(), &BTreeMap::new()).unwrap()
    }

    fn write(&self, text: &str) {
        fs::write(&self.transcript, text).unwrap();
    }

    fn read(&self) -> String {
        fs::read_to_string(&self.transcript).unwrap()
    }
}

#[test]
fn what_an_agent_appends_is_kept_without_another_look() {
    let kept = Kept::new();
    kept.vault().keep(&kept.transcript).unwrap();
    io::Write::write_all(&mut File::options().append(true).open(&kept.transcript).unwrap(), b"two\n")
        .unwrap();
    fs::remove_file(&kept.transcript).unwrap();
    assert!(kept.restore());
    assert_eq!(kept.read(), "one\ntwo\n");
    assert_eq!(fs::metadata(&kept.transcript).unwrap().mode() & 0o777, 0o600);
    assert!(!kept.restore(), "nothing is missing any more");
}

#[test]
fn the_copy_before_a_resume_outlives_what_the_resume_does_to_the_file() {
    let kept = Kept::new();
    kept.write("a long conversation\n");
    kept.vault().keep(&kept.transcript).unwrap();
    kept.vault().keep_before_resume(&kept.transcript).unwrap();
    // In the file itself, which the vault has as a second name of.
    kept.write("");
    assert!(kept.restore(), "an empty transcript is no conversation");
    assert_eq!(kept.read(), "a long conversation\n");
}

#[test]
fn a_file_that_took_the_place_of_a_longer_one_is_kept_beside_it() {
    let kept = Kept::new();
    kept.write("a long conversation\n");
    kept.vault().keep(&kept.transcript).unwrap();
    fs::remove_file(&kept.transcript).unwrap();
    kept.write("short\n");
    kept.vault().keep(&kept.transcript).unwrap();
    fs::remove_file(&kept.transcript).unwrap();
    assert!(kept.restore());
    assert_eq!(kept.read(), "a long conversation\n");
}

#[test]
fn of_all_that_took_the_place_of_another_the_longest_is_kept() {
    let kept = Kept::new();
    for text in ["the longest conversation\n", "a longer one\n", "short\n"] {
        kept.write(text);
        kept.vault().keep(&kept.transcript).unwrap();
        fs::remove_file(&kept.transcript).unwrap();
    }
    assert!(kept.restore());
    assert_eq!(kept.read(), "the longest conversation\n");
}

#[test]
fn what_a_crash_left_half_made_is_not_put_back() {
    let kept = Kept::new();
    kept.vault().keep(&kept.transcript).unwrap();
    let half = kept.vault().dir.join("projects/p/other.jsonl.new");
    fs::write(half, "half").unwrap();
    fs::remove_file(&kept.transcript).unwrap();
    assert!(kept.restore());
    assert_eq!(fs::read_dir(kept.transcript.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn what_the_agent_has_is_never_overwritten() {
    let kept = Kept::new();
    kept.vault().keep(&kept.transcript).unwrap();
    fs::remove_file(&kept.transcript).unwrap();
    kept.write("another one\n");
    assert!(!kept.restore());
    assert_eq!(kept.read(), "another one\n");
}

#[test]
fn an_id_that_is_a_path_has_no_vault() {
    let kept = Kept::new();
    for id in ["..", "../x", "/x", "", ".hidden"] {
        assert!(
            Vault::of(kept.root.path(), SessionId(1), kept.agent, kept.root.path(), id).is_none(),
            "{id}"
        );
    }
}
