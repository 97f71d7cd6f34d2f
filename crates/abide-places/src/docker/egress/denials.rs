//! The log of what a proxy refused: written by the proxy alone, in a directory that no session sees.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{fs, str};

use abide_model::Timestamp;
use abide_sys::untrusted;
use serde::{Deserialize, Serialize};

/// How long the log may become before a new one is begun. The one before it is kept.
const LIMIT: u64 = 256 << 10;

/// A request that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    pub at: Timestamp,
    pub host: String,
    pub port: u16,
    pub why: String,
}

/// The logs in `dir`, the older one first.
fn files(dir: &Path) -> [PathBuf; 2] {
    ["denied.old.jsonl", "denied.jsonl"].map(|name| dir.join(name))
}

/// Adds `denial` to the log in `dir`. One process may do so, one thread at a time.
pub fn append(dir: &Path, denial: &Denial) -> io::Result<()> {
    let [old, current] = files(dir);
    let mut line = serde_json::to_vec(denial)?;
    line.push(b'\n');
    if fs::metadata(&current).is_ok_and(|meta| meta.len() + line.len() as u64 > LIMIT) {
        fs::rename(&current, old)?;
    }
    untrusted::append(&current)?.write_all(&line)
}

/// The last `most` denials in `dir`, the newest last.
pub fn last(dir: &Path, most: usize) -> Vec<Denial> {
    let texts = files(dir).map(|file| untrusted::read(&file).unwrap_or_default());
    let lines = texts.iter().flat_map(|text| text.split(|&b| b == b'\n'));
    let mut denials: Vec<Denial> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    denials.split_off(denials.len().saturating_sub(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_stays_small_and_its_end_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let denial = |port| Denial {
            at: Timestamp(1),
            host: "a".repeat(253),
            port,
            why: "it is not on the list".to_owned(),
        };
        for port in 0..3000 {
            append(dir.path(), &denial(port)).unwrap();
        }
        let sizes: Vec<u64> = files(dir.path()).iter().map(|file| file.metadata().unwrap().len()).collect();
        assert!(sizes.iter().all(|&size| size <= LIMIT), "{sizes:?}");
        assert_eq!(last(dir.path(), 2), [denial(2998), denial(2999)]);
        assert_eq!(last(&dir.path().join("nowhere"), 2), []);
    }
}
