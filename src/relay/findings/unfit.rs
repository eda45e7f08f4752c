use std::fmt;

use super::{Finding, Severity};
use crate::model::ErrorClass;

/// What stands against streaming: all errors, or, where there are none, all that has to be
/// waited for (rule R8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    severity: Severity,
    findings: Vec<Finding>,
}

impl Unfit {
    /// `None` where nothing stands against it.
    pub fn of(findings: &[Finding]) -> Option<Self> {
        let severity = findings.iter().map(|finding| finding.severity).max()?;
        (severity >= Severity::Wait).then(|| Self {
            severity,
            findings: findings
                .iter()
                .filter(|finding| finding.severity == severity)
                .cloned()
                .collect(),
        })
    }

    /// What to do about it (rule R9).
    pub fn class(&self) -> ErrorClass {
        match self.severity {
            Severity::Error => ErrorClass::Fatal,
            Severity::Wait | Severity::Warning | Severity::Ok => ErrorClass::Retry,
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                f.write_str(". Also: ")?;
            }
            write!(f, "{finding}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Unfit {}

#[cfg(test)]
mod tests {
    use super::super::advice;
    use super::*;

    #[test]
    fn all_that_is_worst_is_told_and_nothing_else() {
        let do_it = || advice("do it");
        let wait = Finding::wait("Wait.", do_it());
        let found = [
            Finding::ok("Well."),
            wait.clone(),
            Finding::warning("Hm.", do_it()),
        ];
        let unfit = Unfit::of(&found).unwrap();
        assert_eq!(unfit.to_string(), "Wait; do it");
        assert_eq!(unfit.class(), ErrorClass::Retry);
        let found = [
            Finding::error("First.", do_it()),
            wait,
            Finding::error("Second.", do_it()),
        ];
        let unfit = Unfit::of(&found).unwrap();
        assert_eq!(unfit.to_string(), "First; do it. Also: Second; do it");
        assert_eq!(unfit.class(), ErrorClass::Fatal);
        assert_eq!(Unfit::of(&[Finding::ok("Well.")]), None);
        assert_eq!(Unfit::of(&[]), None);
    }
}
