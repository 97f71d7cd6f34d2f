//! A command line as words: split by the quoting rules of a shell, with no shell and nothing expanded.
//!
//! Words are separated by white space. What is between single quotes is taken as it is; between double quotes a
//! backslash takes `"` or `\` literally; elsewhere a backslash takes any character literally.

/// The words of `line`; an error says what is not closed.
pub fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let (mut words, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            char if char.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("a single quote is not closed")? {
                        '\'' => break,
                        char => word.push(char),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("a double quote is not closed")? {
                        '"' => break,
                        '\\' => match chars.next().ok_or("a double quote is not closed")? {
                            char @ ('"' | '\\') => word.push(char),
                            char => word.extend(['\\', char]),
                        },
                        char => word.push(char),
                    }
                }
            }
            '\\' => {
                let char = chars.next().ok_or("nothing follows the last backslash")?;
                word.get_or_insert_default().push(char);
            }
            char => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    Ok(words)
}

/// A line that [`split`] takes apart into `words` again.
pub fn join(words: &[String]) -> String {
    let quoted = |word: &String| {
        let plain = |char: char| !char.is_whitespace() && !matches!(char, '\'' | '"' | '\\');
        match !word.is_empty() && word.chars().all(plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_split_as_a_shell_would_and_nothing_is_expanded() {
        for (line, expected) in [
            ("pass show x", &["pass", "show", "x"][..]),
            ("  sh  -c 'echo \"$HOME\" | cat'  ", &["sh", "-c", "echo \"$HOME\" | cat"]),
            (r#"a "b \"c\" \d" e\ f"#, &["a", r#"b "c" \d"#, "e f"]),
            ("a '' b", &["a", "", "b"]),
            ("it''s", &["its"]),
            ("", &[]),
        ] {
            assert_eq!(split(line).unwrap(), expected, "{line}");
        }
        for line in ["a 'b", "a \"b", "a \"b\\", "a \\"] {
            assert!(split(line).is_err(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_joined_is_split_into_the_same(words in proptest::collection::vec(".{0,12}", 0..6)) {
            prop_assert_eq!(split(&join(&words)).unwrap(), words);
        }
    }
}
