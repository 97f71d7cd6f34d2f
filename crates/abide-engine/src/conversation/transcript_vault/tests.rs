use abide_model::SessionId;
use tempfile::TempDir;

use super::*;

const ID: &str = "aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa";

/// An agent's directory with one transcript in it, and an instance directory.
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
        fs::write(&transcript, "1\n").unwrap();
        Self { root, agent: abide_agents::agent("claude").unwrap(), transcript }
    }

    fn vault(&self) -> Vault<'_> {
        let (instance_dir, config) = (self.root.path().join("instance_dir"), self.root.path().join("config"));
        Vault::of(&instance_dir, SessionId(1), self.agent, &config, ID).unwrap()
    }

    fn keep(&self) {
        self.vault().keep(&self.transcript).unwrap();
    }

    fn restore(&self) -> RestoredTranscript {
        self.vault().restore(self.root.path(), &BTreeMap::new()).unwrap()
    }

    /// Writes into the transcript as it is, as an agent or a fault does.
    fn write(&self, text: &str) {
        fs::write(&self.transcript, text).unwrap();
    }

    fn append(&self, text: &str) {
        let mut file = File::options().append(true).open(&self.transcript).unwrap();
        io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    }

    fn read(&self) -> String {
        fs::read_to_string(&self.transcript).unwrap()
    }

    /// The one file of the vault.
    fn copy(&self) -> PathBuf {
        self.vault().dir.join("projects/p/t.jsonl")
    }
}

const LONG: &str = "{\"said\":\"a long conversation\"}\n";

#[test]
fn a_copy_shares_nothing_with_its_file_and_grows_by_what_is_new() {
    let kept = Kept::new();
    kept.keep();
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    assert_ne!(inode(&kept.copy()), inode(&kept.transcript));
    let first = inode(&kept.copy());
    kept.append(LONG);
    kept.keep();
    assert_eq!(inode(&kept.copy()), first, "the copy was written anew");
    assert_eq!(fs::read_to_string(kept.copy()).unwrap(), format!("1\n{LONG}"));
    fs::remove_file(&kept.transcript).unwrap();
    assert!(kept.restore().missing);
    assert_eq!(kept.read(), format!("1\n{LONG}"));
    assert_eq!(fs::metadata(&kept.transcript).unwrap().mode() & 0o777, 0o600);
    assert!(!kept.restore().missing, "nothing is missing any more");
}

#[test]
fn a_second_name_of_the_file_becomes_a_copy() {
    let kept = Kept::new();
    fs::create_dir_all(kept.copy().parent().unwrap()).unwrap();
    fs::hard_link(&kept.transcript, kept.copy()).unwrap();
    kept.keep();
    kept.write("");
    assert_eq!(fs::read_to_string(kept.copy()).unwrap(), "1\n");
}

#[test]
fn damage_is_undone_and_kept_beside() {
    let garbage = "\u{7}".repeat(LONG.len());
    let whole = format!("1\n{LONG}2\n");
    for (damage, expected) in [
        ("1\n{\"said\":\"a lo".to_owned(), whole.clone()),
        ("1\n".to_owned(), whole.clone()),
        (format!("1\n{garbage}2\n"), whole.clone()),
        (format!("1\n{garbage}2\n3\n"), format!("{whole}3\n")),
        (format!("1\n{LONG}\0\0"), whole.clone()),
    ] {
        let kept = Kept::new();
        kept.write(&whole);
        kept.keep();
        kept.write(&damage);
        // A look in between must not give up the good copy for the damaged file.
        kept.keep();
        let restored = kept.restore();
        assert_eq!(kept.read(), expected, "{damage:?}");
        let [beside] = &restored.beside[..] else { panic!("{damage:?}: {restored:?}") };
        assert_eq!(fs::read_to_string(beside).unwrap(), damage);
    }
}

#[test]
fn what_was_replaced_by_a_directory_or_emptied_is_put_back() {
    let kept = Kept::new();
    kept.write(LONG);
    kept.keep();
    kept.write("");
    assert!(kept.restore().missing, "an empty transcript is no conversation");
    assert_eq!(kept.read(), LONG);
    fs::remove_file(&kept.transcript).unwrap();
    fs::create_dir_all(kept.transcript.join("in it")).unwrap();
    let restored = kept.restore();
    assert_eq!(kept.read(), LONG);
    assert!(restored.beside[0].join("in it").is_dir(), "{restored:?}");
}

#[test]
fn what_an_agent_wrote_anew_is_left_as_it_is_and_the_longer_one_offered() {
    let kept = Kept::new();
    kept.write(LONG);
    kept.keep();
    kept.write("2\n");
    let restored = kept.restore();
    assert_eq!(kept.read(), "2\n");
    assert_eq!(restored.other, [kept.copy()]);
    assert!(restored.beside.is_empty() && !restored.missing);
}

#[test]
fn of_all_that_took_the_place_of_another_the_longest_is_kept() {
    let kept = Kept::new();
    for text in [LONG, "{\"said\":\"longer\"}\n", "2\n"] {
        kept.write(text);
        kept.keep();
        fs::remove_file(&kept.transcript).unwrap();
    }
    assert!(kept.restore().missing);
    assert_eq!(kept.read(), LONG);
}

#[test]
fn what_a_crash_left_half_made_is_not_put_back() {
    let kept = Kept::new();
    kept.keep();
    let half = kept.vault().dir.join("projects/p/other.jsonl.new");
    fs::write(half, "half").unwrap();
    fs::remove_file(&kept.transcript).unwrap();
    assert!(kept.restore().missing);
    assert_eq!(fs::read_dir(kept.transcript.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_conversation_of_many_files_is_kept_and_put_back_without_the_locks_of_a_process() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().canonicalize().unwrap().join("config/session-state").join(ID);
    let transcript = dir.join("events.jsonl");
    fs::create_dir_all(dir.join("files")).unwrap();
    for name in ["events.jsonl".to_owned(), "inuse.17.lock".to_owned()]
        .into_iter()
        .chain((0..700).map(|n| format!("files/{n}.txt")))
    {
        fs::write(dir.join(name), "1\n").unwrap();
    }
    let kept = Kept { root, agent: abide_agents::agent("copilot").unwrap(), transcript };
    kept.keep();
    fs::remove_dir_all(&dir).unwrap();
    assert!(kept.restore().missing);
    assert_eq!(fs::read_dir(dir.join("files")).unwrap().count(), 700);
    assert!(!dir.join("inuse.17.lock").exists());
    // As an earlier version kept it.
    fs::write(kept.vault().dir.join("session-state").join(ID).join("inuse.17.lock"), "1").unwrap();
    assert!(!kept.restore().missing);
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

/// What a container has put into its home in place of directories and files, before the vault puts a transcript back there.
#[test]
fn a_transcript_is_not_put_back_through_a_link_that_leads_elsewhere() {
    let kept = Kept::new();
    kept.keep();
    let (elsewhere, config) = (kept.root.path().join("elsewhere"), kept.root.path().join("config"));
    fs::create_dir_all(elsewhere.join("p")).unwrap();
    fs::write(elsewhere.join("file"), "the operator's").unwrap();

    fs::remove_dir_all(config.join("projects")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, config.join("projects")).unwrap();
    assert!(kept.vault().restore(kept.root.path(), &BTreeMap::new()).is_err());
    assert_eq!(fs::read_dir(elsewhere.join("p")).unwrap().count(), 0);

    fs::remove_file(config.join("projects")).unwrap();
    fs::create_dir_all(config.join("projects/p")).unwrap();
    let unfinished = with_suffix(&kept.transcript, UNFINISHED);
    std::os::unix::fs::symlink(elsewhere.join("file"), unfinished).unwrap();
    kept.restore();
    assert_eq!(fs::read_to_string(elsewhere.join("file")).unwrap(), "the operator's");
    assert_eq!(kept.read(), "1\n");
}

#[test]
fn a_directory_of_an_instance_that_is_a_link_out_of_it_has_no_vault() {
    let kept = Kept::new();
    let (instance_dir, config) = (kept.root.path().join("instance_dir"), kept.root.path().join("config"));
    fs::create_dir_all(instance_dir.join("home/.claude")).unwrap();
    std::os::unix::fs::symlink(&config, instance_dir.join("home/.codex")).unwrap();
    let vault = |name: &str| {
        Vault::of(&instance_dir, SessionId(1), kept.agent, &instance_dir.join("home").join(name), ID)
            .is_some()
    };
    assert!(vault(".claude") && vault(".not-there"));
    assert!(!vault(".codex"));
}

#[test]
fn what_a_link_in_place_of_a_transcript_leads_to_is_not_kept() {
    let kept = Kept::new();
    let secret = kept.root.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    fs::remove_file(&kept.transcript).unwrap();
    std::os::unix::fs::symlink(&secret, &kept.transcript).unwrap();
    assert!(copy(&kept.transcript, &kept.root.path().join("copied")).is_err());
}
