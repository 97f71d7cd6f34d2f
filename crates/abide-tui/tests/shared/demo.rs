//! Every screen with made-up data.

use std::time::Duration;

use abide_model::evidence::{Ahead, FileChange, MountEvidence};
use abide_model::leaving::Returns;
use abide_model::status::Kept;
use abide_model::{Difference, Doing, InstanceId, Isolation, LaunchScope, Status};
use abide_tui::Ask;
use abide_tui::line::{Line, Tone};
use abide_tui::page::Item;
use abide_tui::screens::{
    self, AskedBy, ComeBackCandidate, Confirm, HostRepo, LaunchSubject, Live, PreservedTree, StartNew,
    Subject,
};

/// The names by which [`show`] knows the screens.
pub const NAMES: [&str; 7] =
    ["ended", "come-back", "come-back-many", "preserved", "diverged", "leaving", "confirm"];

/// Asks what the screen called `name` asks, and gives the answer in words.
pub fn show(name: &str, ask: &Ask) -> String {
    match name {
        "ended" => format!("{:?}", screens::session_ended(ask, &subject(), &mounts(), 14)),
        "come-back" => come_back(ask, 3),
        "come-back-many" => come_back(ask, 40),
        "preserved" => preserved(ask, HostRepo::Unchanged),
        "diverged" => preserved(ask, diverged()),
        "leaving" => format!("{:?}", screens::leaving(ask, &sessions())),
        "confirm" => format!("{:?}", screens::confirm(ask, &question())),
        _ => format!("no such screen; there are {}", NAMES.join(", ")),
    }
}

fn come_back(ask: &Ask, number: u64) -> String {
    format!("{:?}", screens::come_back(ask, launch(&scope()), StartNew::Offered, &candidates(number)))
}

fn preserved(ask: &Ask, host: HostRepo) -> String {
    format!("{:?}", screens::preserved(ask, &tree(1, host), AskedBy::Load))
}

pub fn launch(scope: &LaunchScope) -> LaunchSubject<'_> {
    LaunchSubject { scope, role: "the-architect", program: Some("claude") }
}

/// A preserved instance with the first `number` mounts.
pub fn tree(number: usize, host: HostRepo) -> PreservedTree {
    let mounts = mounts().into_iter().take(number).collect();
    PreservedTree { subject: subject(), mounts, host, differences: Vec::new() }
}

pub fn differences() -> Vec<Difference> {
    vec![Difference {
        what: "command".into(),
        then: "claude --model opus".into(),
        now: "claude --model sonnet".into(),
    }]
}

pub fn id(number: u64) -> InstanceId {
    InstanceId::from_bits(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

pub fn scope() -> LaunchScope {
    LaunchScope { workspace: Some("payments".into()), ..LaunchScope::directory("/srv/payments".into()) }
}

pub fn subject() -> Subject {
    let agents = vec!["claude".into(), "codex".into()];
    Subject { id: id(1), name: None, role: "the-architect".into(), agents, scope: scope() }
}

pub fn mounts() -> Vec<MountEvidence> {
    let file = |code: &str, path: &str| FileChange { code: code.into(), path: path.into() };
    let mut files = vec![
        file(" M", "crates/ledger/src/posting/reconcile.rs"),
        file("A ", "crates/ledger/src/posting/half_open_intervals_and_their_tests/mod.rs"),
        file("UU", "Cargo.lock"),
        file("??", "notes.md"),
        file("??", "文書/設計メモ.md"),
        file("!!", ".env.local"),
    ];
    files.extend((1..=24).map(|n| file(" M", &format!("migrations/2026_{n:02}_totals.sql"))));
    let ahead = |branch: &str, commits, against: &str| Ahead {
        branch: branch.into(),
        commits,
        against: against.into(),
    };
    vec![
        MountEvidence {
            target: "/workspace/payments".into(),
            isolation: Isolation::Worktree,
            branch: Some("abide/k3f9x2m1".into()),
            files,
            ahead: vec![ahead("abide/k3f9x2m1", 2, "origin/main"), ahead("spike", 1, "no upstream")],
            stashes: vec!["WIP on spike: try another rounding".into()],
            operation: Some("rebase of abide/k3f9x2m1 onto main".into()),
            ..Default::default()
        },
        MountEvidence {
            target: "/workspace/web".into(),
            isolation: Isolation::Clone,
            unknown: vec!["git status did not finish within 10 s".into()],
            ..Default::default()
        },
        MountEvidence {
            target: "/workspace/docs".into(),
            isolation: Isolation::Worktree,
            ..Default::default()
        },
        MountEvidence {
            target: "/etc/shared".into(),
            files: vec![file("??", "not ours")],
            ..Default::default()
        },
    ]
}

pub fn candidates(number: u64) -> Vec<ComeBackCandidate> {
    let one = |n: u64| {
        let (status, because, evidence) = match n % 3 {
            0 => (Status::Restorable(Kept::Dirty), "left with work at risk", Some(mounts()[..1].to_vec())),
            1 => (Status::Active, "it runs", None),
            _ => (Status::Restorable(Kept::HostLost), "the machine was restarted while it ran", Some(vec![])),
        };
        ComeBackCandidate {
            id: id(n + 1),
            name: (n == 2).then(|| "nightly-reconciliation-of-ledgers".into()),
            status,
            because: because.into(),
            age: Duration::from_secs(600 + n * 5400),
            evidence,
            sessions: vec!["claude".into(), "totals\u{1b}[31m of refunds".into()],
            agent: if n == 2 { "a-wrapper-of-some-agent".into() } else { "claude".into() },
        }
    };
    (0..number).map(one).collect()
}

pub fn diverged() -> HostRepo {
    HostRepo::Diverged(vec![
        "main was force-pushed: 3 commits that this tree is based on are gone".into(),
        "release/2.4, which was there, has been deleted".into(),
    ])
}

pub fn sessions() -> Vec<Live> {
    let live = |name: &str, agent: &str, doing, minutes: u64, about: Option<&str>, returns| Live {
        instance: name.split('/').take(1).collect(),
        name: name.into(),
        agent: agent.into(),
        doing,
        since: Some(Duration::from_secs(minutes * 60)),
        about: about.map(Into::into),
        returns,
    };
    let conversation = Returns::Conversation;
    vec![
        live("ab-k3f9x2m1/s1", "claude", Doing::Working, 12, None, conversation),
        live("ab-k3f9x2m1/s2", "codex", Doing::Idle, 5, None, conversation),
        live(
            "refunds/s1",
            "gemini",
            Doing::NeedsInput,
            0,
            Some("Run `cargo test --workspace`?"),
            conversation,
        ),
        live("ab-p7q2r8s3/s1", "zsh", Doing::Unknown, 180, None, Returns::Anew),
        live("docs/s1", "claude", Doing::Idle, 20, None, conversation),
        live("docs/s2", "bash", Doing::Idle, 25, None, Returns::Scrollback),
    ]
}

pub fn question() -> Confirm {
    let item = |n: u64, what: &str| {
        Item::new(0, Line::elastic(Tone::Strong, id(n).display_name()).and(Tone::Dim, what))
    };
    Confirm {
        title: "prune".into(),
        question: "Move these instances to the trash?".into(),
        list: vec![
            item(3, "  kept 31 days ago, nothing at risk"),
            item(4, "  kept 45 days ago, nothing at risk"),
        ],
        note: Some("The trash keeps them for 14 days; `abide trash restore` brings them back.".into()),
        yes: "Move 2 instances to the trash".into(),
        no: "Keep them".into(),
    }
}
