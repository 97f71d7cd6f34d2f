//! The labelled points of this crate, at which a test kills the process to see that nothing is lost there.

/// Every label of this crate, in the order in which an operation passes them.
pub const CRASH_POINTS: &[&str] = &[
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
        let mut listed = CRASH_POINTS.to_vec();
        listed.sort_unstable();
        assert_eq!(found, listed, "each point once in the code and once in the list");
    }
}
