//! Any other command that the configuration calls an agent.

use std::path::Path;

use abide_model::Timestamp;
use abide_model::conversation::{Candidate, Located};

use crate::agent::{Agent, Profile};
use crate::argv::is_plain_id;

/// An agent of which abide knows what the configuration says.
#[derive(Debug)]
pub struct Custom {
    name: String,
    resume: Option<Vec<String>>,
}

static PROFILE: Profile = Profile { name: "custom", ..Profile::UNKNOWN };

impl Custom {
    /// The agent that the configuration calls `name`; `resume` is the command that resumes `{id}`.
    pub fn new(name: &str, resume: Option<&[String]>) -> Self {
        Self { name: name.to_owned(), resume: resume.map(<[String]>::to_vec) }
    }
}

impl Agent for Custom {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn program(&self) -> &str {
        &self.name
    }

    fn resumes(&self) -> bool {
        self.resume.is_some()
    }

    /// The configured command stands for itself: what the operator added to the first start is not appended to it,
    /// because nothing is known of where it would go.
    fn resume(&self, _argv: &[String], id: &str) -> Option<Vec<String>> {
        let template = self.resume.as_ref().filter(|_| is_plain_id(id))?;
        Some(template.iter().map(|word| word.replace("{id}", id)).collect())
    }

    fn transcript(&self, _config_dir: &Path, _cwd: &Path, _id: &str) -> Located {
        Located::Unknown(format!("where {} keeps its conversations is not known", self.name))
    }

    fn discover(&self, _config_dir: &Path, _cwd: Option<&Path>, _since: Timestamp) -> Vec<Candidate> {
        Vec::new()
    }
}
