use std::fmt;

use super::origin::Origin;

/// One thing to tell the user about one key. Never holds a secret: values are shown only for
/// keys that cannot be one, and never when they came from a config provider.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Where the key was written, or the file it is missing from.
    pub origin: Origin,
    /// The key; empty when the finding is about a whole file or argument.
    pub key: String,
    /// What is the matter.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

/// Everything that keeps a configuration from being used, in the order of the inputs.
/// Displays as a list, one problem a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors {
    problems: Vec<Finding>,
}

impl ConfigErrors {
    /// The problems, sorted by origin; at least one.
    pub fn problems(&self) -> &[Finding] {
        &self.problems
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [_] => write!(f, "1 problem in the configuration:")?,
            problems => write!(f, "{} problems in the configuration:", problems.len())?,
        }
        self.problems
            .iter()
            .try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

/// Collects findings while the configuration is read, so that the user sees all of them at once.
#[derive(Debug, Default)]
pub(super) struct Report {
    problems: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl Report {
    pub(super) fn problem(
        &mut self,
        origin: &Origin,
        key: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.problems
            .push(finding(origin, key, what.into(), remedy.into()));
    }

    pub(super) fn warning(
        &mut self,
        origin: &Origin,
        key: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.warnings
            .push(finding(origin, key, what.into(), remedy.into()));
    }

    /// The result with its warnings, or all problems.
    pub(super) fn finish<T>(
        mut self,
        result: Option<T>,
    ) -> Result<(T, Vec<Finding>), ConfigErrors> {
        self.warnings.sort();
        self.problems.sort();
        match result {
            Some(result) if self.problems.is_empty() => Ok((result, self.warnings)),
            _ => Err(ConfigErrors {
                problems: self.problems,
            }),
        }
    }
}

fn finding(origin: &Origin, key: &str, what: String, remedy: String) -> Finding {
    Finding {
        origin: origin.clone(),
        key: key.to_owned(),
        what,
        remedy,
    }
}
