//! How messages show what a file or a path holds.

use std::path::Path;

use abide_model::sanitised;

/// How much of a found value a message repeats.
const SHOWN: usize = 60;

/// `text` cut to a readable length, with nothing in it that could act on a terminal.
pub(crate) fn printable(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", sanitised(&text[..cut])),
        None => sanitised(text).into_owned(),
    }
}

/// `path` as messages show it: `~` for the home directory, nothing in it that could act on a terminal.
pub(crate) fn shown_path(path: &Path, home: &Path) -> String {
    let text = match path.strip_prefix(home) {
        Ok(rest) if home.parent().is_some() => Path::new("~").join(rest).display().to_string(),
        _ => path.display().to_string(),
    };
    sanitised(&text).into_owned()
}

/// `noun` with its article.
pub(crate) fn a(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_or_hostile_value_is_cut_and_made_harmless() {
        assert_eq!(printable("a\u{1b}[2J\nb"), "a·[2J·b");
        assert_eq!(printable(&"é".repeat(100)).chars().count(), SHOWN + 1);
        assert_eq!(printable(&"é".repeat(SHOWN)).chars().count(), SHOWN);
    }

    #[test]
    fn only_a_path_below_home_is_shortened() {
        assert_eq!(shown_path(Path::new("/home/me/a"), Path::new("/home/me")), "~/a");
        assert_eq!(shown_path(Path::new("/home/me2/a"), Path::new("/home/me")), "/home/me2/a");
        assert_eq!(shown_path(Path::new("/etc/a"), Path::new("/")), "/etc/a");
        assert_eq!(shown_path(Path::new("/etc/a"), Path::new("")), "/etc/a");
    }
}
