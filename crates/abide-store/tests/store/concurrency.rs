//! Many processes at once, doing everything to everything.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use abide_model::InstanceId;
use abide_store::{ReadError, Store, StoreError};
use abide_sys::clock::now;

use crate::common::{Sandbox, assert_no_litter, assignment, bump, child, counter, create, end, sound};

const PROCESSES: u64 = 6;
const STEPS: usize = 60;
const DEADLINE: Duration = Duration::from_secs(240);

/// What the processes say they did, for one instance.
#[derive(Debug, Default)]
struct Account {
    created: u64,
    bumped: u64,
    trashed: u64,
    restored: u64,
    purged: u64,
    counter_when_purged: u64,
}

#[test]
fn many_processes_at_once_lose_no_update_revive_no_unit_and_never_wait_for_ever() {
    let s = Sandbox::new();
    let start = |seed: u64| {
        let mut command = child("work", s.store.layout().home(), &seed.to_string(), &[]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (1..=PROCESSES).map(start).collect();
    let accounts = collect(children);

    assert!(s.store.sweep().unwrap().failed.is_empty());
    assert_no_litter(&s.store);
    let live: BTreeMap<_, _> = sound(&s.store).into_iter().map(|i| (i.id, i)).collect();
    let entries = s.store.trashed().unwrap();
    let trashed: BTreeMap<_, _> = entries.into_iter().map(|e| (e.name.id, e.content.unwrap())).collect();
    for id in live.keys().chain(trashed.keys()) {
        assert!(accounts.contains_key(id), "nobody made {id}");
    }
    for (id, account) in &accounts {
        let (is_live, is_trashed) = (live.contains_key(id), trashed.contains_key(id));
        let places = u64::from(is_live) + u64::from(is_trashed) + account.purged;
        assert_eq!((account.created, places), (1, 1), "{id} is in {places} places: {account:?}");
        let left_trash = account.restored + account.purged;
        assert_eq!(account.trashed, left_trash + u64::from(is_trashed), "{id}: {account:?}");
        let here = live.get(id).or(trashed.get(id)).map_or(account.counter_when_purged, counter);
        assert_eq!(account.bumped, here, "an update of {id} was lost");
    }
    let total = |of: fn(&Account) -> u64| accounts.values().map(of).sum::<u64>();
    for (what, count) in [
        ("bumped", total(|a| a.bumped)),
        ("trashed", total(|a| a.trashed)),
        ("restored", total(|a| a.restored)),
        ("purged", total(|a| a.purged)),
    ] {
        assert!(count > 5, "hardly anything was {what}, so this tested hardly anything");
    }
}

fn collect(children: Vec<Child>) -> BTreeMap<InstanceId, Account> {
    let deadline = Instant::now() + DEADLINE;
    let mut accounts: BTreeMap<InstanceId, Account> = BTreeMap::new();
    // Each child's output is read by a thread of its own, so that none blocks on a full pipe.
    let waiting: Vec<_> = children
        .into_iter()
        .map(|child| {
            let pid = rustix::process::Pid::from_child(&child);
            (pid, std::thread::spawn(move || child.wait_with_output().unwrap()))
        })
        .collect();
    while waiting.iter().any(|(_, thread)| !thread.is_finished()) {
        if Instant::now() > deadline {
            for (pid, thread) in &waiting {
                if !thread.is_finished() {
                    let _ = rustix::process::kill_process(*pid, rustix::process::Signal::KILL);
                }
            }
            panic!("somebody waits for ever");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    for (_, thread) in waiting {
        let output = thread.join().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        for line in said.lines().filter_map(|line| line.strip_prefix("did ")) {
            let mut words = line.split(' ');
            let account = accounts.entry(words.next_back().unwrap().parse().unwrap()).or_default();
            match (words.next().unwrap(), words.next()) {
                ("create", None) => account.created += 1,
                ("bump", None) => account.bumped += 1,
                ("trash", None) => account.trashed += 1,
                ("restore", None) => account.restored += 1,
                ("purge", Some(counter)) => {
                    account.purged += 1;
                    account.counter_when_purged = counter.parse().unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
    }
    accounts
}

pub fn in_child() {
    use std::io::Write as _;
    let (home, seed) = assignment();
    let store = Store::open(home).unwrap();
    let mut dice = Dice(seed.parse::<u64>().unwrap().wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // The harness says something on its own, without a line break.
    let mut said = String::from("\n");
    for _ in 0..STEPS {
        match step(&store, &mut dice) {
            Ok(Some(did)) => said.push_str(&format!("did {did}\n")),
            Ok(None) => {}
            // Somebody else was faster.
            Err(
                StoreError::Read(ReadError::NotFound(_))
                | StoreError::NotInTrash(_)
                | StoreError::NotEnding { .. },
            ) => {}
            Err(StoreError::Refused(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    std::io::stdout().write_all(said.as_bytes()).unwrap();
}

fn step(store: &Store, dice: &mut Dice) -> Result<Option<String>, StoreError> {
    let live: Vec<_> = sound(store).into_iter().map(|i| i.id).collect();
    let trashed = store.trashed()?;
    Ok(match dice.roll(10) {
        0 => Some(format!("create {}", create(store))),
        1..=4 => match dice.choose(&live) {
            Some(id) => {
                bump(store, *id)?;
                Some(format!("bump {id}"))
            }
            None => Some(format!("create {}", create(store))),
        },
        5..=6 => match dice.choose(&live) {
            Some(id) => {
                end(store, *id)?;
                store.trash(*id, now())?;
                Some(format!("trash {id}"))
            }
            None => None,
        },
        7 => match dice.choose(&trashed) {
            Some(entry) => Some(format!("restore {}", store.restore(&entry.name, now())?)),
            None => None,
        },
        8 => match dice.choose(&trashed) {
            Some(entry) => {
                store.purge(&entry.name)?;
                let counter = counter(entry.content.as_ref().unwrap());
                Some(format!("purge {counter} {}", entry.name.id))
            }
            None => None,
        },
        _ => {
            store.sweep()?;
            None
        }
    })
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % sides
    }

    fn choose<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let n = self.roll(from.len().max(1));
        from.get(n)
    }
}
