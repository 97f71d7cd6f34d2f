//! The journal as the mux uses it, across deaths at every point.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use abide_journal::{Chunk, Journal, Recovered};
use abide_testkit::SmallDisk;
use abide_wire::session::TerminalSize;
use proptest::prelude::*;

const CAPACITY: u64 = 64 << 10;
/// What a ring of this capacity may give up of its oldest bytes, and what may be skipped to find a place to enter.
const GIVEN_UP: u64 = 2 * (CAPACITY / 8);

struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("s.ring")
    }

    fn open(&self) -> (Journal, Option<Recovered>) {
        Journal::open(&self.path(), CAPACITY, 1)
    }
}

fn write(journal: &mut Journal, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let space = journal.space();
        let n = bytes.len().min(space.len());
        space[..n].copy_from_slice(&bytes[..n]);
        assert_eq!(journal.commit(n), &bytes[..n]);
        bytes = &bytes[n..];
    }
}

fn sync(journal: &mut Journal) {
    journal.sync_job().unwrap().unwrap().run().unwrap();
}

/// Everything that is replayed: the output as one, and each size with the number of bytes before it.
fn replayed(recovered: &Recovered) -> (Vec<u8>, Vec<(usize, TerminalSize)>) {
    let (mut output, mut sizes) = (Vec::new(), Vec::new());
    let each = |chunk: Chunk<'_>| match chunk {
        Chunk::Resize(size) => sizes.push((output.len(), size)),
        Chunk::Output(bytes) => output.extend_from_slice(bytes),
    };
    recovered.replay(each).unwrap();
    (output, sizes)
}

fn size(cols: u16) -> TerminalSize {
    TerminalSize { cols, rows: 24 }
}

#[test]
fn what_was_committed_comes_back_with_its_sizes_in_place() {
    let fixture = Fixture::new();
    let (mut journal, nothing) = fixture.open();
    assert!(nothing.is_none() && journal.is_on_disk());
    journal.resized(size(80));
    write(&mut journal, b"wide\r\n");
    journal.resized(size(40));
    journal.resized(size(40));
    write(&mut journal, b"narrow");
    drop(journal);
    let (_, recovered) = fixture.open();
    let recovered = recovered.unwrap();
    assert_eq!(replayed(&recovered), (b"wide\r\nnarrow".to_vec(), vec![(0, size(80)), (6, size(40))]));
    assert_eq!((recovered.truncated, recovered.size), (false, Some(size(40))));
    assert_eq!(fs::metadata(fixture.path()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_was_read_but_not_committed_is_not_lost_and_not_doubled() {
    let fixture = Fixture::new();
    let (mut journal, _) = fixture.open();
    write(&mut journal, b"committed ");
    journal.space()[..8].copy_from_slice(b"rea\0d it");
    drop(journal);
    for _ in 0..3 {
        let (_, recovered) = fixture.open();
        assert_eq!(replayed(&recovered.unwrap()).0, b"committed rea\0d it");
    }
}

#[test]
fn a_checkpoint_is_given_back_with_only_what_followed_it() {
    let fixture = Fixture::new();
    let (mut journal, _) = fixture.open();
    journal.resized(size(80));
    write(&mut journal, b"before");
    journal.resized(size(40));
    journal.checkpoint(b"state").unwrap();
    journal.resized(size(100));
    write(&mut journal, b"after");
    drop(journal);
    let (_, recovered) = fixture.open();
    let recovered = recovered.unwrap();
    let checkpoint = recovered.checkpoint.as_ref().unwrap();
    assert_eq!((checkpoint.position, checkpoint.blob.as_slice()), (6, b"state".as_slice()));
    assert_eq!(replayed(&recovered), (b"after".to_vec(), vec![(0, size(100))]));
}

#[test]
fn a_torn_checkpoint_leaves_the_one_before_it() {
    for cut in [0, 1, 20, 47, 48, 60] {
        let fixture = Fixture::new();
        let (mut journal, _) = fixture.open();
        for n in 0..3 {
            write(&mut journal, b"line\n");
            journal.checkpoint(format!("the state number {n}").as_bytes()).unwrap();
        }
        drop(journal);
        // Slots alternate: the third checkpoint is in the first slot.
        let newest = fixture.path().with_extension("ckpt0");
        let whole = fs::metadata(&newest).unwrap().len();
        assert!(cut < whole);
        fs::File::options().write(true).open(&newest).unwrap().set_len(cut).unwrap();
        let (mut journal, recovered) = fixture.open();
        let recovered = recovered.unwrap();
        assert_eq!(recovered.checkpoint.as_ref().unwrap().blob, b"the state number 1");
        assert_eq!(replayed(&recovered).0, b"line\n");
        // The survivor must not be the one that is overwritten next.
        journal.checkpoint(b"again").unwrap();
        fs::remove_file(&newest).unwrap();
        drop(journal);
        let recovered = Recovered::read(&fixture.path()).unwrap();
        assert_eq!(recovered.checkpoint.unwrap().blob, b"the state number 1");
    }
}

#[test]
fn a_flipped_bit_in_a_checkpoint_is_noticed() {
    let fixture = Fixture::new();
    let (mut journal, _) = fixture.open();
    write(&mut journal, b"line\n");
    journal.checkpoint(&[7; 1000]).unwrap();
    drop(journal);
    let slot = fs::File::options().write(true).open(fixture.path().with_extension("ckpt0")).unwrap();
    slot.write_all_at(&[6], 700).unwrap();
    let recovered = Recovered::read(&fixture.path()).unwrap();
    assert!(recovered.checkpoint.is_none());
    assert_eq!(replayed(&recovered).0, b"line\n");
}

#[test]
fn a_ring_that_went_round_without_a_checkpoint_is_entered_at_a_line_and_says_so() {
    let fixture = Fixture::new();
    let (mut journal, _) = fixture.open();
    journal.resized(size(80));
    let lines: String = (0..20_000).map(|n| format!("line {n}\r\n")).collect();
    write(&mut journal, lines.as_bytes());
    drop(journal);
    let (_, recovered) = fixture.open();
    let recovered = recovered.unwrap();
    let (output, sizes) = replayed(&recovered);
    assert!(recovered.truncated);
    assert!(lines.as_bytes().ends_with(&output) && output.starts_with(b"line "));
    assert!(output.len() as u64 > CAPACITY - GIVEN_UP - 20);
    assert_eq!(sizes, vec![(0, size(80))]);
}

#[test]
fn a_checkpoint_is_asked_for_before_the_ring_or_the_table_of_sizes_overwrites_anything() {
    let fixture = Fixture::new();
    let (mut journal, _) = fixture.open();
    for round in 0..20 {
        while !journal.due() {
            write(&mut journal, &[b'x'; 999]);
        }
        journal.checkpoint(format!("{round}").as_bytes()).unwrap();
        assert!(!journal.due());
        let recovered = Recovered::read(&fixture.path()).unwrap();
        assert_eq!(recovered.checkpoint.unwrap().blob, format!("{round}").as_bytes());
    }
    for cols in 1.. {
        journal.resized(size(cols));
        let recovered = Recovered::read(&fixture.path()).unwrap();
        assert_eq!(replayed(&recovered).1.len(), usize::from(cols));
        if journal.due() {
            break;
        }
    }
}

#[test]
fn after_a_reboot_only_what_was_synced_counts() {
    let fixture = Fixture::new();
    let (mut journal, _) = fixture.open();
    write(&mut journal, b"on disk ");
    sync(&mut journal);
    write(&mut journal, b"perhaps");
    journal.space()[..3].copy_from_slice(b"not");
    drop(journal);
    forge_another_boot(&fixture.path());
    let (mut journal, recovered) = fixture.open();
    assert_eq!(replayed(&recovered.unwrap()).0, b"on disk ");
    write(&mut journal, b"and on");
    drop(journal);
    let (_, recovered) = fixture.open();
    assert_eq!(replayed(&recovered.unwrap()).0, b"on disk and on");
}

#[test]
fn a_state_that_reached_the_disk_before_its_output_is_never_restored() {
    let fixture = Fixture::new();
    let (mut journal, _) = fixture.open();
    write(&mut journal, b"synced ");
    sync(&mut journal);
    for state in ["lost", "lost too"] {
        write(&mut journal, b"lost ");
        journal.checkpoint(state.as_bytes()).unwrap();
    }
    drop(journal);
    forge_another_boot(&fixture.path());
    let (mut journal, _) = fixture.open();
    journal.checkpoint(b"synced").unwrap();
    // As far as the lost states were, and further than the one that was written over.
    write(&mut journal, b"other words");
    drop(journal);
    let recovered = fixture.open().1.unwrap();
    assert_eq!(recovered.checkpoint.as_ref().unwrap().blob, b"synced");
    assert_eq!(replayed(&recovered).0, b"other words");
}

fn forge_another_boot(ring: &Path) {
    let file = fs::File::options().write(true).open(ring).unwrap();
    file.write_all_at(&[0xaa; 16], 40).unwrap();
}

#[test]
fn a_foreign_or_damaged_file_is_set_aside_and_never_overwritten() {
    let good = {
        let fixture = Fixture::new();
        drop(fixture.open());
        fs::read(fixture.path()).unwrap()
    };
    let mut wrong_version = good.clone();
    wrong_version[8] = 99;
    let mut absurd_head = good.clone();
    absurd_head[56..64].fill(0xff);
    let cases =
        [vec![], b"somebody's notes".to_vec(), good[..good.len() - 1].to_vec(), wrong_version, absurd_head];
    for content in cases {
        let fixture = Fixture::new();
        fs::write(fixture.path(), &content).unwrap();
        let (mut journal, recovered) = fixture.open();
        assert!(recovered.is_none() && journal.is_on_disk());
        write(&mut journal, b"new");
        let aside = fixture.dir.path().join("s.ring.damaged-0");
        assert!(fs::read(aside).unwrap() == content);
    }
}

#[test]
fn where_there_can_be_no_file_the_session_goes_on_without() {
    let (mut journal, recovered) = Journal::open(Path::new("/proc/no/such.ring"), CAPACITY, 1);
    assert!(recovered.is_none() && !journal.is_on_disk() && !journal.due());
    journal.resized(size(80));
    write(&mut journal, &[b'x'; 100_000]);
    journal.checkpoint(b"state").unwrap();
    assert!(journal.sync_job().unwrap().is_none());
}

#[test]
fn a_disk_that_is_full_costs_the_journal_and_not_the_mux() {
    // A size that no disk has stands for a disk that has no room.
    let fixture = Fixture::new();
    let (mut journal, recovered) = Journal::open(&fixture.path(), 1 << 58, 1);
    assert!(recovered.is_none() && !journal.is_on_disk());
    write(&mut journal, b"still here");
    assert!(!fixture.path().exists());
}

#[test]
fn a_checkpoint_of_an_earlier_ring_at_the_same_path_is_not_believed() {
    let fixture = Fixture::new();
    let (mut journal, _) = fixture.open();
    write(&mut journal, b"old");
    journal.checkpoint(b"old state").unwrap();
    drop(journal);
    let slot = fixture.path().with_extension("ckpt0");
    let kept = fs::read(&slot).unwrap();
    fs::remove_file(fixture.path()).unwrap();
    let (mut journal, _) = fixture.open();
    assert!(!slot.exists());
    fs::write(&slot, kept).unwrap();
    write(&mut journal, b"new");
    drop(journal);
    let (_, recovered) = fixture.open();
    let recovered = recovered.unwrap();
    assert!(recovered.checkpoint.is_none());
    assert_eq!(replayed(&recovered).0, b"new");
}

#[derive(Debug, Clone)]
enum Step {
    Write(Vec<u8>),
    Resize(u16),
    Checkpoint,
    Sync,
    /// The mux dies, with this much read and not committed.
    Die(Vec<u8>),
}

/// Bytes of every value, zero among them; cheap to make, unlike a strategy for each.
fn noise(len: usize, mut seed: u32) -> Vec<u8> {
    let next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = |max: usize| (0..max, any::<u32>()).prop_map(|(len, seed)| noise(len, seed));
    prop_oneof![
        10 => bytes(12_000).prop_map(Step::Write),
        3 => (1..200u16).prop_map(Step::Resize),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Sync),
        2 => bytes(3000).prop_map(Step::Die),
    ]
}

#[test]
fn a_journal_on_a_full_disk_goes_on_in_memory_and_hands_on_every_byte() {
    let fixture = Fixture::new();
    let disk = SmallDisk::mount(fixture.dir.path(), 1);
    let (mut journal, _) = fixture.open();
    journal.resized(size(80));
    write(&mut journal, b"before");
    disk.unreserve("s.ring");
    disk.fill();
    let output: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8 + 1).collect();
    write(&mut journal, &output);
    journal.resized(size(90));
    assert!(!journal.is_on_disk());
    let (mut next, recovered) = fixture.open();
    assert!(recovered.is_some() && !next.is_on_disk());
    write(&mut next, &output);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// A model that is restored and replayed has seen exactly what the first one saw, however often the mux died.
    #[test]
    fn any_mixture_of_output_sizes_checkpoints_and_deaths_is_replayed_exactly(
        steps in proptest::collection::vec(step(), 1..60)
    ) {
        let fixture = Fixture::new();
        let mut journal = fixture.open().0;
        let (mut output, mut sizes) = (Vec::new(), Vec::<(u64, TerminalSize)>::new());
        for step in steps {
            match step {
                Step::Write(bytes) => {
                    write(&mut journal, &bytes);
                    output.extend_from_slice(&bytes);
                }
                Step::Resize(cols) => {
                    journal.resized(size(cols));
                    if sizes.last().map(|(_, size)| *size) != Some(size(cols)) {
                        sizes.push((output.len() as u64, size(cols)));
                    }
                }
                // The state is everything so far, told by two numbers.
                Step::Checkpoint => journal.checkpoint(format!("{} {}", output.len(), sizes.len()).as_bytes()).unwrap(),
                Step::Sync => sync(&mut journal),
                Step::Die(mut bytes) => {
                    let space = journal.space();
                    bytes.truncate(space.len());
                    space[..bytes.len()].copy_from_slice(&bytes);
                    while bytes.last() == Some(&0) {
                        bytes.pop();
                    }
                    output.extend_from_slice(&bytes);
                    drop(journal);
                    let (next, recovered) = fixture.open();
                    journal = next;
                    check(&recovered.unwrap(), &output, &sizes)?;
                }
            }
            if journal.due() {
                journal.checkpoint(format!("{} {}", output.len(), sizes.len()).as_bytes()).unwrap();
            }
        }
    }

    /// Whatever is in the files, reading them ends, and a journal comes out.
    #[test]
    fn arbitrary_damage_never_panics(
        damage in proptest::collection::vec((0..4200u64, any::<u8>()), 1..40),
        slot in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let fixture = Fixture::new();
        let (mut journal, _) = fixture.open();
        journal.resized(size(80));
        write(&mut journal, &[b'x'; 100_000]);
        drop(journal);
        let file = fs::File::options().write(true).open(fixture.path()).unwrap();
        for (at, byte) in damage {
            file.write_all_at(&[byte], at).unwrap();
        }
        fs::write(fixture.path().with_extension("ckpt0"), slot).unwrap();
        let (mut journal, recovered) = fixture.open();
        if let Some(recovered) = recovered {
            replayed(&recovered);
        }
        write(&mut journal, &[b'y'; 100_000]);
    }
}

fn check(recovered: &Recovered, output: &[u8], sizes: &[(u64, TerminalSize)]) -> Result<(), TestCaseError> {
    let (replayed_output, replayed_sizes) = replayed(recovered);
    let (from, first_size) = match &recovered.checkpoint {
        Some(checkpoint) => {
            let text = std::str::from_utf8(&checkpoint.blob).unwrap();
            let (bytes, sizes) = text.split_once(' ').unwrap();
            prop_assert_eq!(checkpoint.position, bytes.parse::<u64>().unwrap());
            (checkpoint.position as usize, sizes.parse().unwrap())
        }
        None => (0, 0),
    };
    prop_assert!(!recovered.truncated);
    prop_assert!(replayed_output == output[from..], "from {}", from);
    let expected: Vec<_> =
        sizes[first_size..].iter().map(|(at, size)| (*at as usize - from, *size)).collect();
    prop_assert_eq!(replayed_sizes, expected);
    Ok(())
}
