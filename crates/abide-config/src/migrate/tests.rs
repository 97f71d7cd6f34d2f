use std::fs;
use std::path::{Path, PathBuf};

use crate::file_kind::{FileKind, Source};
use crate::role::Role;
use crate::settings::Settings;
use crate::workspace::Workspace;

fn fixtures(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/migrations").join(kind)
}

fn migrated<T: FileKind>(content: &str) -> String {
    let source = Source::parse::<T>("test.toml".to_owned(), content.as_bytes().to_vec()).unwrap();
    source.draft.text().to_owned()
}

/// A directory for each version there ever was, and in each the file before and after.
fn check<T: FileKind + PartialEq + std::fmt::Debug>(kind: &str) {
    assert!(T::VERSION > 0);
    for version in 0..T::VERSION {
        let dir = fixtures(kind).join(format!("from-{version}"));
        let before = fs::read_to_string(dir.join("before.toml")).unwrap();
        let after = fs::read_to_string(dir.join("after.toml")).unwrap();

        assert_eq!(migrated::<T>(&before), after, "{kind} from version {version}");
        assert_eq!(migrated::<T>(&after), after, "{kind} migrated twice from version {version}");

        let home = Path::new("/home/me");
        let source = Source::parse::<T>("test.toml".to_owned(), after.into_bytes()).unwrap();
        source.decode::<T>(home).unwrap();

        let crlf = before.replace('\n', "\r\n");
        let lines_end_alike = migrated::<T>(&crlf).split_inclusive('\n').all(|line| line.ends_with("\r\n"));
        assert!(lines_end_alike, "{kind} from version {version} with CRLF");
    }
}

#[test]
fn every_older_config_becomes_the_current_one() {
    check::<Settings>("config");
}

#[test]
fn every_older_workspace_becomes_the_current_one() {
    check::<Workspace>("workspace");
}

#[test]
fn every_older_role_becomes_the_current_one() {
    check::<Role>("role");
}

#[test]
fn no_comment_is_lost_by_a_migration() {
    type Migrate = fn(&str) -> String;
    let kinds = [
        ("config", migrated::<Settings> as Migrate),
        ("workspace", migrated::<Workspace>),
        ("role", migrated::<Role>),
    ];
    for (kind, migrate) in kinds {
        let before = fs::read_to_string(fixtures(kind).join("from-0/before.toml")).unwrap();
        let after = migrate(&before);
        for comment in before.lines().filter_map(|line| line.split_once('#')).map(|(_, comment)| comment) {
            assert!(after.contains(comment), "{kind}: {comment}");
        }
    }
}

#[test]
fn what_a_migration_does_not_understand_is_refused_where_it_stands() {
    let before = "default_agent = \"claude\"\n\n[exit]\ncleanup = \"sometimes\"\nother = 1\n";
    let source = Source::parse::<Settings>("c.toml".to_owned(), before.into()).unwrap();
    let error = source.decode::<Settings>(Path::new("/home/me")).unwrap_err().to_string();
    assert!(error.contains("c.toml:4:11: policy = \"sometimes\": not a policy"), "{error}");
    assert!(error.contains("c.toml:3:2: exit: not a setting"), "{error}");
}

#[test]
fn a_new_key_that_is_already_there_wins_over_the_old_one() {
    let before = "agent = \"codex\"\ndefault_agent = \"claude\"\n";
    let source = Source::parse::<Settings>("c.toml".to_owned(), before.into()).unwrap();
    let error = source.decode::<Settings>(Path::new("/home/me")).unwrap_err().to_string();
    assert!(error.contains("c.toml:2:1: default_agent: not a setting"), "{error}");
}

#[test]
fn old_keys_in_an_inline_table_are_found_too() {
    let after = migrated::<Settings>("exit = { cleanup = \"always_clean\" }\n");
    assert_eq!(after, "version = 1\npolicy = \"clean\"\n");
}

#[test]
fn what_has_no_place_in_the_new_shape_stays_where_it_is() {
    let before = "trash = 5\ntrash_days = 3\n";
    let source = Source::parse::<Settings>("c.toml".to_owned(), before.into()).unwrap();
    let error = source.decode::<Settings>(Path::new("/home/me")).unwrap_err().to_string();
    assert!(error.contains("c.toml:1:9: trash: not a section"), "{error}");
    assert!(error.contains("c.toml:2:1: trash_days: not a setting"), "{error}");
}

#[test]
fn a_wrong_mount_of_an_older_workspace_is_refused_where_it_stands() {
    let before = "workdir = \"/srv\"\nmounts = [\n  \"/a:/b\",\n  \"/c:/d:sideways\",\n]\n";
    let source = Source::parse::<Workspace>("w.toml".to_owned(), before.into()).unwrap();
    let error = source.decode::<Workspace>(Path::new("/home/me")).unwrap_err().to_string();
    assert!(
        error.starts_with("w.toml:4:3: mounts[1].isolation = \"sideways\": not an isolation mode"),
        "{error}"
    );

    let before = "workdir = \"/srv\"\nmounts = [\"/a\", 5]\n";
    let source = Source::parse::<Workspace>("w.toml".to_owned(), before.into()).unwrap();
    let error = source.decode::<Workspace>(Path::new("/home/me")).unwrap_err().to_string();
    assert!(error.contains("w.toml:2:17: mounts[1]: not a table"), "{error}");
}
