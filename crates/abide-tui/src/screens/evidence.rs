//! What mounts hold that exists nowhere else, as rows to read.

use abide_model::Isolation;
use abide_model::evidence::{Ahead, FileChange, MountEvidence, Verdict, verdict};

use super::count;
use crate::line::{Line, Tone};
use crate::page::Item;

/// The rows of every mount that is ours. Shared ones are the host's own.
pub fn evidence_items(mounts: &[MountEvidence]) -> Vec<Item> {
    mounts.iter().filter(|mount| mount.isolation != Isolation::Shared).flat_map(of_mount).collect()
}

fn of_mount(mount: &MountEvidence) -> Vec<Item> {
    let head =
        Line::toned(Tone::Dim, format!("{}  ", mount.isolation)).and_elastic(Tone::Strong, &mount.target);
    let on = mount.branch.iter().map(|branch| format!("  on {branch}")).collect::<String>();
    let head = head.and(Tone::Dim, on);
    if mount.verdict() == Verdict::Clean {
        return vec![Item::new(0, head.and(Tone::Good, "  nothing at risk"))];
    }
    let title = |tone, title: &str| Line::toned(tone, format!("{title:<13}"));
    let mut items = vec![Item::new(0, head)];
    items.extend(
        mount.unknown.iter().map(|why| Item::new(1, title(Tone::Bad, "unknown").and(Tone::Plain, why))),
    );
    let operation = mount.operation.iter();
    items.extend(operation.map(|what| Item::new(1, title(Tone::Warn, "in progress").and(Tone::Plain, what))));
    let mut group = |name: &str, found: String, rows: Vec<Line>| {
        if !rows.is_empty() {
            items.push(Item::new(1, title(Tone::Warn, name).and(Tone::Plain, found)));
            items.extend(rows.into_iter().map(|row| Item::new(2, row)));
        }
    };
    let files = mount.files.iter().map(file).collect();
    group("uncommitted", count(mount.files.len(), "file", "files"), files);
    let ahead = mount.ahead.iter().map(branch).collect();
    group("unpushed", count(mount.ahead.len(), "branch", "branches"), ahead);
    let stashes = mount.stashes.iter().map(Line::from).collect();
    group("stashed", count(mount.stashes.len(), "stash", "stashes"), stashes);
    let refs = mount.refs.iter().map(Line::from).collect();
    group("made here", count(mount.refs.len(), "tag or ref", "tags and refs"), refs);
    let linked = mount.linked.iter().map(|place| Line::elastic(Tone::Plain, place)).collect();
    let named = count(mount.linked.len(), "worktree elsewhere", "worktrees elsewhere");
    group("needed by", format!("{named}, unusable without this clone"), linked);
    items
}

fn file(change: &FileChange) -> Line {
    let tone = match change.code.as_str() {
        "??" => Tone::Accent,
        "!!" => Tone::Dim,
        code if code.contains('U') || matches!(code, "AA" | "DD") => Tone::Bad,
        _ => Tone::Warn,
    };
    Line::toned(tone, format!("{:<2} ", change.code)).and_elastic(Tone::Plain, &change.path)
}

fn branch(ahead: &Ahead) -> Line {
    let commits = count(usize::try_from(ahead.commits).unwrap_or(usize::MAX), "commit", "commits");
    // A ref to compare with reads as a place; anything else is the reason why there is none.
    let against = match ahead.against.contains(' ') {
        true => format!("  {commits}, {}", ahead.against),
        false => format!("  {commits} ahead of {}", ahead.against),
    };
    Line::elastic(Tone::Plain, &ahead.branch).and(Tone::Dim, against)
}

/// All of it in a few words: `3 files, 1 branch ahead`.
pub fn summary(mounts: &[MountEvidence]) -> Line {
    let tone = match verdict(mounts) {
        Verdict::Clean => return Line::toned(Tone::Good, "nothing at risk"),
        Verdict::Unknown => Tone::Bad,
        Verdict::Dirty | Verdict::Unpushed => Tone::Warn,
    };
    let ours = || mounts.iter().filter(|mount| mount.isolation != Isolation::Shared);
    let all = |of: fn(&MountEvidence) -> usize| ours().map(of).sum::<usize>();
    let parts = [
        (all(|m| m.files.len()), "file", "files"),
        (all(|m| m.ahead.len()), "branch ahead", "branches ahead"),
        (all(|m| m.stashes.len()), "stash", "stashes"),
        (all(|m| m.refs.len()), "tag or ref", "tags and refs"),
        (all(|m| m.linked.len()), "worktree elsewhere", "worktrees elsewhere"),
        (all(|m| usize::from(m.operation.is_some())), "unfinished operation", "unfinished operations"),
        (all(|m| usize::from(!m.unknown.is_empty())), "mount unknown", "mounts unknown"),
    ];
    let parts = parts.into_iter().filter(|(number, ..)| *number > 0);
    Line::toned(
        tone,
        parts.map(|(number, one, many)| count(number, one, many)).collect::<Vec<_>>().join(", "),
    )
}
