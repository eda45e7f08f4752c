use std::collections::HashSet;

use super::{Finding, Severity};

/// The warnings that were there at the last look, so that each is said once while it lasts.
#[derive(Debug, Default)]
pub(in crate::relay) struct Warned {
    said: HashSet<String>,
}

impl Warned {
    /// Logs the warnings that are new.
    pub(in crate::relay) fn say(&mut self, findings: &[Finding]) {
        self.fresh(findings)
            .iter()
            .for_each(|warning| tracing::warn!("{warning}"));
    }

    /// Takes these for said.
    pub(in crate::relay) fn knows(&mut self, findings: &[Finding]) {
        self.fresh(findings);
    }

    fn fresh(&mut self, findings: &[Finding]) -> Vec<String> {
        let now: HashSet<String> = findings
            .iter()
            .filter(|finding| finding.severity == Severity::Warning)
            .map(ToString::to_string)
            .collect();
        let mut fresh: Vec<String> = now.difference(&self.said).cloned().collect();
        fresh.sort();
        self.said = now;
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::super::advice;
    use super::*;

    #[test]
    fn a_warning_is_said_when_it_comes_and_when_it_comes_again() {
        let warning = |what: &str| Finding::warning(what, advice("do it"));
        let mut warned = Warned::default();
        let (a, b) = (warning("A."), warning("B."));
        assert_eq!(warned.fresh(&[a.clone(), Finding::ok("C.")]), ["A; do it"]);
        assert_eq!(warned.fresh(&[a.clone(), b]), ["B; do it"]);
        assert_eq!(warned.fresh(std::slice::from_ref(&a)), [""; 0]);
        assert_eq!(warned.fresh(&[]), [""; 0]);
        assert_eq!(warned.fresh(&[a]), ["A; do it"]);
    }
}
