//! Conversations of an agent of which only the configuration knows where they are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use abide_agents::{Chosen, Located, for_session};
use abide_model::Timestamp;
use abide_model::session::Described;
use tempfile::TempDir;

const EVER: Timestamp = Timestamp(0);

/// A home directory, in which an agent keeps conversations as `pattern` says, and directories to work in.
struct Home {
    root: TempDir,
    agent: Chosen,
}

impl Home {
    fn new(pattern: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().canonicalize().unwrap();
        let transcripts = Some(pattern.replace('~', at.to_str().unwrap()));
        let described = Described { transcripts, ..Described::default() };
        for dir in ["shop", "other", ".foo"] {
            fs::create_dir(at.join(dir)).unwrap();
        }
        Self { root, agent: for_session("foo", &["foo".to_owned()], Some(&described)) }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(below)
    }

    /// Writes a transcript, `CWD` in which stands for `shop`; each is newer than the one before.
    fn write(&self, below: &str, content: &str) -> PathBuf {
        let (path, shop) = (self.path(below), self.path("shop"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content.replace("CWD", shop.to_str().unwrap())).unwrap();
        path
    }

    fn slug(&self, dir: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        self.path(dir).to_str().unwrap().chars().map(plain).collect()
    }

    fn dir(&self) -> PathBuf {
        self.agent.default_dir(Path::new("/nowhere"))
    }

    fn locate(&self, id: &str) -> Located {
        self.agent.transcript(&self.dir(), &self.path("shop"), id)
    }

    fn ids(&self, dir: Option<&str>) -> Vec<String> {
        let dir = dir.map(|dir| self.path(dir));
        let found = self.agent.discover(&self.dir(), dir.as_deref(), EVER);
        found.into_iter().map(|candidate| candidate.id).collect()
    }
}

#[test]
fn a_pattern_with_the_directory_in_it_finds_what_was_held_there() {
    for (pattern, ending) in [("{id}.jsonl", "jsonl"), ("*.json", "json")] {
        let home = Home::new(&format!("~/.foo/sessions/{{cwd-slug}}/{pattern}"));
        assert_eq!(home.locate("one"), Located::Missing, "nothing was ever said to it");
        let own = home.write(&format!(".foo/sessions/{}/one.{ending}", home.slug("shop")), "hello");
        home.write(&format!(".foo/sessions/{}/two.{ending}", home.slug("other")), "hello");
        assert_eq!(home.locate("one"), Located::Found(own));
        assert_eq!((home.locate("two"), home.locate("three")), (Located::Missing, Located::Missing));
        assert!(matches!(home.locate("../x"), Located::Unknown(_)));
        assert_eq!(
            (home.ids(Some("shop")), home.ids(Some("other"))),
            (vec!["one".to_owned()], vec!["two".to_owned()])
        );
    }
}

#[test]
fn two_directories_that_share_a_slug_are_distinguished_by_the_recorded_path() {
    let home = Home::new("~/.foo/{cwd-slug}/{id}.json");
    let foreign = home.path("shop").to_str().unwrap().replace("shop", "sh_op");
    home.write(&format!(".foo/{}/one.json", home.slug("shop")), &format!("{{\"cwd\": {foreign:?}}}"));
    home.write(&format!(".foo/{}/two.json", home.slug("shop")), "{\n  \"meta\": { \"cwd\": \"CWD\" }\n}");
    assert_eq!(home.ids(Some("shop")), ["two"]);
    assert!(matches!(home.locate("one"), Located::Unknown(why) if why.contains("sh_op")));
}

#[test]
fn a_pattern_without_the_directory_counts_only_what_records_it() {
    let home = Home::new("~/.foo/**/{id}.json");
    let deep = home.write(".foo/2026/11/15/one.json", "{\"type\":\"meta\",\"directory\":\"CWD\"}\n{}");
    home.write(".foo/two.json", "{\"directory\":\"CWD\"}");
    home.write(".foo/2026/silent.json", "{}");
    home.write(".foo/2026/foreign.json", "{\"cwd\":\"/somewhere/else\"}");
    home.write(".foo/2026/one.txt", "{\"cwd\":\"CWD\"}");
    let mut ids = home.ids(Some("shop"));
    ids.sort();
    assert_eq!(ids, ["one", "two"]);
    assert_eq!(home.locate("one"), Located::Found(deep));
    assert!(matches!(home.locate("silent"), Located::Found(_)), "an exact id is enough");
    assert!(matches!(home.locate("foreign"), Located::Unknown(_)));
    assert_eq!(home.ids(None).len(), 3);
}

#[test]
fn the_id_may_be_the_name_of_a_directory_or_the_project_itself_the_place() {
    let home = Home::new("~/.foo/{id}/events.jsonl");
    let path = home.write(".foo/one/events.jsonl", "{\"cwd\":\"CWD\"}");
    assert_eq!((home.ids(Some("shop")), home.locate("one")), (vec!["one".to_owned()], Located::Found(path)));

    let home = Home::new("{cwd}/.foo/chat-{id}.json");
    let path = home.write("shop/.foo/chat-one.json", "hello");
    assert_eq!((home.ids(Some("shop")), home.locate("one")), (vec!["one".to_owned()], Located::Found(path)));
    assert_eq!(home.ids(Some("other")), [""; 0]);
}

#[test]
fn the_newest_comes_first_and_empty_ones_and_links_are_left_out() {
    let home = Home::new("~/.foo/{cwd-slug}/{id}.json");
    let dir = format!(".foo/{}", home.slug("shop"));
    for (id, seconds) in [("old", 1000), ("new", 3000), ("middle", 2000)] {
        let path = home.write(&format!("{dir}/{id}.json"), "hello");
        fs::File::open(path)
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
            .unwrap();
    }
    home.write(&format!("{dir}/empty.json"), "");
    std::os::unix::fs::symlink("/etc/passwd", home.path(&format!("{dir}/link.json"))).unwrap();
    assert_eq!(home.ids(Some("shop")), ["new", "middle", "old"]);
    assert_eq!(home.locate("empty"), Located::Missing);
    assert!(!matches!(home.locate("link"), Located::Found(_)));
}
