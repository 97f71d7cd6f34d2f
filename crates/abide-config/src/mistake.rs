//! What is wrong with a file or a value, in words that suffice to correct it.

use std::fmt;

use crate::path::Position;

/// One mistake in a configuration file, or in a value given for one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mistake {
    /// The file, with `~` for the home directory; `None` for a value that is in no file yet.
    pub file: Option<String>,
    /// Where in the file.
    pub position: Option<Position>,
    /// The setting, or the key that is none; empty if the mistake is about the whole file.
    pub setting: String,
    /// The value that was found, unless it may be a secret.
    pub found: Option<String>,
    /// What is wrong with it.
    pub problem: String,
    /// What would have been right.
    pub allowed: Option<String>,
    /// What was probably meant.
    pub nearest: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.position) {
            (Some(file), Some(Position { line, column })) => write!(f, "{file}:{line}:{column}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, _) => {}
        }
        match &self.found {
            Some(found) => write!(f, "{} = {found}: ", self.setting)?,
            None if self.setting.is_empty() => {}
            None => write!(f, "{}: ", self.setting)?,
        }
        f.write_str(&self.problem)?;
        if let Some(allowed) = &self.allowed {
            write!(f, "; allowed: {allowed}")?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, " (did you mean \"{nearest}\"?)")?;
        }
        Ok(())
    }
}

/// Every mistake of one file, in the order of its lines; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Mistakes {
    /// The mistakes; of a file with very many, the first ones.
    pub listed: Vec<Mistake>,
    /// How many more there are.
    pub more: usize,
}

impl From<Mistake> for Mistakes {
    fn from(mistake: Mistake) -> Self {
        Self { listed: vec![mistake], more: 0 }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (count, mistake) in self.listed.iter().enumerate() {
            let newline = if count == 0 { "" } else { "\n" };
            write!(f, "{newline}{mistake}")?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more; fix these first", self.more)?;
        }
        Ok(())
    }
}
