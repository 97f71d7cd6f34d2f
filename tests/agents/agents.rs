//! The agents under test: what each needs to start without a question, and where its conversations are.

pub mod claude;
pub mod codex;
pub mod copilot;
pub mod gemini;
pub mod kimi;
pub mod opencode;
pub mod qwen;

use std::path::{Path, PathBuf};

/// The last part of every path below `dir` that is `depth` deep; nothing if there is none yet.
fn names(dir: &Path, depth: usize) -> Vec<String> {
    let mut paths = vec![dir.to_owned()];
    for _ in 0..depth {
        let entries = paths.iter().flat_map(std::fs::read_dir).flat_map(|entries| entries.flatten());
        paths = entries.map(|entry| entry.path()).collect::<Vec<PathBuf>>();
    }
    paths.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
}

/// The ids in the names of the transcripts: what ends in `.jsonl`, without that and without what precedes the id.
fn ids(names: Vec<String>) -> Vec<String> {
    let stems = names.into_iter().filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned));
    stems.filter_map(|stem| stem.get(stem.len().checked_sub(36)?..).map(str::to_owned)).collect()
}
