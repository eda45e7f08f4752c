//! What is wrong with the facts, for a configuration: pure, so that `check`, the preflight and
//! the running relay (rule R8) judge alike.

mod broker;
mod login;
mod publication;
mod role;
mod server;
mod shapes;
mod slot;
mod table;
mod unfit;
mod warned;

use std::fmt;

pub use broker::{of_broker, topics};
pub use login::{of_login, of_replication_login};
pub(super) use shapes::Shapes;
pub use slot::of_rows_before_the_slot;
pub use unfit::Unfit;
pub(super) use warned::Warned;

use crate::config::{self, Config};
use crate::source::postgres::{Facts, SourceOptions, StreamFacts};

/// One thing to tell about what a connector stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was found, in words and names.
    pub what: String,
    /// What mends it; absent where nothing has to be mended.
    pub mend: Option<Mend>,
    /// Whether the stream, too, tells it where it became so, and what lies before that place can
    /// still be delivered.
    pub at_its_place: bool,
}

/// How bad a finding is, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Ok,
    /// It works, and may surprise.
    Warning,
    /// It does not work now, and needs nobody at outboxd to begin to: `run` waits for it.
    Wait,
    /// `run` refuses to start, or would lose events or harm the database if it did.
    Error,
}

/// What mends a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mend {
    /// Statements for the database, by somebody who may.
    Sql(String),
    /// A setting, or another thing to do.
    Do(String),
}

impl Finding {
    fn ok(what: impl Into<String>) -> Self {
        Self {
            severity: Severity::Ok,
            what: what.into(),
            mend: None,
            at_its_place: false,
        }
    }

    fn warning(what: impl Into<String>, mend: Mend) -> Self {
        Self::bad(Severity::Warning, what, mend)
    }

    fn wait(what: impl Into<String>, mend: Mend) -> Self {
        Self::bad(Severity::Wait, what, mend)
    }

    fn error(what: impl Into<String>, mend: Mend) -> Self {
        Self::bad(Severity::Error, what, mend)
    }

    fn bad(severity: Severity, what: impl Into<String>, mend: Mend) -> Self {
        Self {
            severity,
            what: what.into(),
            mend: Some(mend),
            at_its_place: false,
        }
    }

    /// This one can be left to the stream, see [`Finding::at_its_place`].
    fn told_at_its_place(self) -> Self {
        Self {
            at_its_place: true,
            ..self
        }
    }
}

/// For a log or an error, on one line; `check` has another form.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what.trim_end_matches('.'))?;
        match &self.mend {
            None => Ok(()),
            Some(Mend::Sql(sql)) => write!(f, "; to mend it: {}", on_one_line(sql)),
            Some(Mend::Do(what)) => write!(f, "; {what}"),
        }
    }
}

/// Statements with their comments as they can stand on one line.
fn on_one_line(sql: &str) -> String {
    let lines = sql.lines().map(|line| match line.split_once("--") {
        Some((code, comment)) => format!("{code}/* {} */", comment.trim()),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join(" ")
}

fn sql(statements: impl Into<String>) -> Mend {
    Mend::Sql(statements.into())
}

fn advice(what: impl Into<String>) -> Mend {
    Mend::Do(what.into())
}

/// A key of the configuration that does not do what it says.
pub fn of_configuration(finding: &config::Finding) -> Finding {
    let key = match finding.key.as_str() {
        "" => String::new(),
        key => format!("{key}: "),
    };
    Finding::warning(
        format!("{}: {key}{}.", finding.origin, finding.what),
        advice(finding.remedy.clone()),
    )
}

/// Whether the slot was ever used, where that is not told by the publication's mark: one that
/// was in use and is missing has lost events; one never made has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotUse {
    /// Nobody here knows.
    Unknown,
    /// This process has read it.
    InThisProcess,
}

/// Everything at the database's end.
pub fn of_database(facts: &Facts, config: &Config, used: SlotUse) -> Vec<Finding> {
    let mut findings = server::findings(&facts.server, facts.stream.slot.as_ref());
    findings.extend(role::findings(facts, &config.source));
    findings.extend(of_stream(&facts.stream, config, used));
    findings
}

/// Slot, publication and tables: what can change under a running relay (rule R8).
pub fn of_stream(stream: &StreamFacts, config: &Config, used: SlotUse) -> Vec<Finding> {
    let mut findings = of_slot(stream, &config.source, used);
    findings.extend(publication::findings(stream, &config.source));
    findings.extend(table::findings(stream, config));
    findings
}

/// The slot alone.
pub fn of_slot(stream: &StreamFacts, source: &SourceOptions, used: SlotUse) -> Vec<Finding> {
    slot::findings(stream, source, used)
}

#[cfg(test)]
mod planted;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_one_line_sql_can_still_be_run() {
        let finding = Finding::error("Bad.", sql("-- first\nSELECT 1;  -- that\nSELECT 2;"));
        assert_eq!(
            finding.to_string(),
            "Bad; to mend it: /* first */ SELECT 1;  /* that */ SELECT 2;"
        );
    }
}
