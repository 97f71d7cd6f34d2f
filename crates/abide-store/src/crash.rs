//! Labelled points at which a test may kill the process, to see that nothing is lost there.

/// Every label of this crate, in the order in which an operation passes them.
pub const POINTS: &[&str] = &[
    "store.create.reserved",
    "store.create.staged",
    "store.create.renamed",
    "store.write.staged",
    "store.write.renamed",
    "store.trash.locked",
    "store.trash.renamed",
    "store.restore.stamped",
    "store.restore.renamed",
    "store.purge.renamed",
    "store.purge.begun",
    "store.purge.emptied",
    "store.purge.deleted",
    "store.sweep.begun",
];

/// Dies here, as if by `kill -9`, if this is a debug build and the environment names `label`.
#[cfg(debug_assertions)]
pub fn point(label: &'static str) {
    if std::env::var_os(abide_model::vars::ABIDE_CRASH_AT).is_some_and(|at| at == label) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        // The signal is delivered on the way back from the system call; this is for the compiler and for surprises.
        std::process::abort();
    }
}

/// Nothing: this is a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_label: &'static str) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_points_is_the_list_of_those_in_the_code() {
        let mut found: Vec<String> = Vec::new();
        for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let calls = text.split("crash::point(\"").skip(1);
            found.extend(calls.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
        }
        found.retain(|label| label.starts_with("store."));
        found.sort();
        let mut listed = POINTS.to_vec();
        listed.sort_unstable();
        assert_eq!(found, listed, "each point once in the code and once in the list");
    }
}
