//! The images that a Dockerfile starts from: found, and replaced by those that are pinned.

use std::collections::BTreeMap;

/// An instruction, from its first line to its last.
#[derive(Default)]
struct Instruction<'a> {
    raw: Vec<&'a str>,
    /// Its lines as one.
    joined: String,
    /// How many of its last lines are documents that it holds.
    documents: usize,
}

/// What is known of a Dockerfile up to some instruction.
struct DockerfileState<'a> {
    escape: char,
    args: &'a [(String, String)],
    /// What was declared before the first stage.
    declared: BTreeMap<String, String>,
    stages: Vec<String>,
    in_stage: bool,
}

/// `text` with each image that a stage starts from, or copies from, replaced by what `pinned` gives for it, if it does. `args` are
/// the build's arguments.
pub(super) fn with_bases<E>(
    text: &str,
    args: &[(String, String)],
    pinned: &mut dyn FnMut(&str) -> Result<Option<String>, E>,
) -> Result<String, E> {
    let (declared, stages) = (BTreeMap::new(), Vec::new());
    let mut state = DockerfileState { escape: escape(text), args, declared, stages, in_stage: false };
    let mut lines = text.lines();
    let mut written = String::with_capacity(text.len());
    while let Some(instruction) = state.next(&mut lines) {
        let words = words(&instruction.joined);
        let image = state.image_of(&words);
        let line = match image.map(|image| Ok((pinned(&image.name)?, image))).transpose()? {
            Some((Some(pinned), image)) => instruction.with_image(&words, &image, &pinned),
            _ => instruction.raw.join("\n"),
        };
        written.push_str(&line);
        written.push('\n');
    }
    Ok(written)
}

/// An image that an instruction names.
struct NamedImage {
    /// Which of its words names it.
    index: usize,
    /// What stands before the name in that word.
    flag: &'static str,
    name: String,
}

impl Instruction<'_> {
    /// Its text with `pinned` in place of `image`; `words` are its own.
    fn with_image(&self, words: &[&str], image: &NamedImage, pinned: &str) -> String {
        let word = words[image.index];
        let start = word.as_ptr() as usize - self.joined.as_ptr() as usize;
        let (before, after) = (&self.joined[..start], &self.joined[start + word.len()..]);
        let mut lines = vec![format!("{before}{}{pinned}{after}", image.flag)];
        lines.extend(self.raw[self.raw.len() - self.documents..].iter().map(|line| line.to_string()));
        lines.join("\n")
    }
}

impl DockerfileState<'_> {
    fn next<'t>(&self, lines: &mut std::str::Lines<'t>) -> Option<Instruction<'t>> {
        let first = lines.next()?;
        let mut instruction = Instruction { raw: vec![first], ..Instruction::default() };
        if is_comment(first) {
            return Some(instruction);
        }
        let mut line = first;
        loop {
            let whole = line.trim_end();
            let Some(part) = whole.strip_suffix(self.escape) else {
                instruction.joined.push_str(whole);
                break;
            };
            instruction.joined.push_str(part);
            // Comments and empty lines do not end what goes on.
            loop {
                let Some(next) = lines.next() else { return Some(instruction) };
                instruction.raw.push(next);
                line = next;
                if !is_comment(next) {
                    break;
                }
            }
        }
        for end in document_ends(&instruction.joined) {
            for line in lines.by_ref() {
                instruction.raw.push(line);
                instruction.documents += 1;
                if line.trim_start_matches('\t') == end {
                    break;
                }
            }
        }
        Some(instruction)
    }

    /// The image that an instruction of these words takes something from, if it is not one of the file's own stages.
    fn image_of(&mut self, words: &[&str]) -> Option<NamedImage> {
        let keyword = words.first()?.to_ascii_uppercase();
        let flags = words.iter().skip(1).take_while(|word| word.starts_with("--")).count();
        match keyword.as_str() {
            "ARG" if !self.in_stage => words.iter().skip(1).for_each(|word| self.declare(word)),
            "FROM" => return self.base_of(words, flags + 1),
            "COPY" => {
                let index = (1..=flags).find(|index| words[*index].starts_with("--from="))?;
                let name = unquoted(words[index].strip_prefix("--from=")?);
                let own = name.bytes().all(|b| b.is_ascii_digit()) || self.is_stage(&name);
                return (!own).then_some(NamedImage { index, flag: "--from=", name });
            }
            _ => {}
        }
        None
    }

    fn base_of(&mut self, words: &[&str], index: usize) -> Option<NamedImage> {
        self.in_stage = true;
        let name = self.expanded(&unquoted(words.get(index)?));
        let own = name == "scratch" || self.is_stage(&name);
        if words.get(index + 1).is_some_and(|word| word.eq_ignore_ascii_case("as")) {
            self.stages.extend(words.get(index + 2).map(|stage| stage.to_ascii_lowercase()));
        }
        (!own).then_some(NamedImage { index, flag: "", name })
    }

    fn is_stage(&self, name: &str) -> bool {
        self.stages.contains(&name.to_ascii_lowercase())
    }

    fn declare(&mut self, word: &str) {
        let (name, default) = word.split_once('=').unwrap_or((word, ""));
        let given = self.args.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone());
        let value = given.unwrap_or_else(|| self.expanded(&unquoted(default)));
        self.declared.insert(name.to_owned(), value);
    }

    /// `text` with the values of variables: `$NAME`, `${NAME}`, `${NAME:-other}` and `${NAME:+other}`.
    fn expanded(&self, text: &str) -> String {
        let Some((before, after)) = text.split_once('$') else { return text.to_owned() };
        let (variable, rest) = match after.strip_prefix('{').and_then(|after| after.split_once('}')) {
            Some((inner, rest)) => (inner, rest),
            None => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                after.split_at(after.find(|c| !is_name(c)).unwrap_or(after.len()))
            }
        };
        let value = |name: &str| self.declared.get(name).filter(|value| !value.is_empty());
        let value = match (variable.split_once(":-"), variable.split_once(":+")) {
            (Some((name, other)), _) => value(name).cloned().unwrap_or_else(|| other.to_owned()),
            (_, Some((name, other))) => value(name).map(|_| other.to_owned()).unwrap_or_default(),
            _ => value(variable).cloned().unwrap_or_default(),
        };
        format!("{before}{value}{}", self.expanded(rest))
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn unquoted(word: &str) -> String {
    word.trim_matches(['"', '\'']).to_owned()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#') || line.trim().is_empty()
}

/// The character that joins lines, which the comments at the top may choose.
fn escape(text: &str) -> char {
    let directives =
        text.lines().map_while(|line| line.trim().strip_prefix('#')).map(|line| line.split_once('='));
    let chosen = directives.flatten().find(|(name, _)| name.trim().eq_ignore_ascii_case("escape"));
    chosen.and_then(|(_, value)| value.trim().chars().next()).unwrap_or('\\')
}

/// The lines that end the documents (`<<EOF`) which an instruction announces.
fn document_ends(line: &str) -> Vec<&str> {
    if !["RUN", "COPY", "ADD"]
        .iter()
        .any(|keyword| line.trim_start().to_ascii_uppercase().starts_with(keyword))
    {
        return Vec::new();
    }
    let ends = words(line).into_iter().filter_map(|word| word.split_once("<<").map(|(_, end)| end));
    ends.map(|end| end.trim_start_matches('-').trim_matches(['"', '\'']))
        .filter(|end| !end.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str, args: &[(&str, &str)]) -> (String, Vec<String>) {
        let args: Vec<_> = args.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let mut found = Vec::new();
        let mut pinned = |name: &str| {
            found.push(name.to_owned());
            Ok::<_, ()>(Some(format!("pinned-{}", found.len())))
        };
        let text = with_bases(text, &args, &mut pinned).unwrap();
        (text, found)
    }

    #[test]
    fn every_image_is_found_and_replaced_and_nothing_else_changes() {
        for (text, args, expected, found) in [
            ("FROM debian:13\nRUN x\n", &[][..], "FROM pinned-1\nRUN x\n", &["debian:13"][..]),
            (
                "from --platform=$P a AS b\nFROM B\n",
                &[],
                "from --platform=$P pinned-1 AS b\nFROM B\n",
                &["a"],
            ),
            ("FROM scratch\nCOPY x /\n", &[], "FROM scratch\nCOPY x /\n", &[]),
            ("ARG V=13\nFROM a:${V}\n", &[], "ARG V=13\nFROM pinned-1\n", &["a:13"]),
            (
                "ARG V=13\nARG I=a:$V\nFROM $I\n",
                &[("V", "12")],
                "ARG V=13\nARG I=a:$V\nFROM pinned-1\n",
                &["a:12"],
            ),
            ("ARG V\nFROM a:${V:-1}-${V:+x}$V.\n", &[], "ARG V\nFROM pinned-1\n", &["a:1-."]),
            (
                "FROM a AS x\nCOPY --chown=1 --from=x /a /b\nCOPY --from=0 /a /b\nCOPY --from=b:1 /a /b\n",
                &[],
                "FROM pinned-1 AS x\nCOPY --chown=1 --from=x /a /b\nCOPY --from=0 /a /b\nCOPY --from=pinned-2 /a /b\n",
                &["a", "b:1"],
            ),
            (
                "FROM \\\n # note\n\n a\nRUN y \\\n  FROM z\n",
                &[],
                "FROM  pinned-1\nRUN y \\\n  FROM z\n",
                &["a"],
            ),
            (
                "# escape=`\nFROM a\nRUN y `\nFROM b\n",
                &[],
                "# escape=`\nFROM pinned-1\nRUN y `\nFROM b\n",
                &["a"],
            ),
            (
                "FROM a\nRUN <<EOF\nFROM b\nEOF\nFROM c\n",
                &[],
                "FROM pinned-1\nRUN <<EOF\nFROM b\nEOF\nFROM pinned-2\n",
                &["a", "c"],
            ),
            ("# FROM x\nFROM a", &[], "# FROM x\nFROM pinned-1\n", &["a"]),
        ] {
            assert_eq!(
                rewritten(text, args),
                (expected.to_owned(), found.iter().map(|s| s.to_string()).collect()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_needs_no_other_name_stays_as_it_is_written() {
        let text = "FROM \\\n  debian:13\nRUN a \\\n  b\n";
        assert_eq!(with_bases(text, &[], &mut |_| Ok::<_, ()>(None)).unwrap(), text);
    }
}
