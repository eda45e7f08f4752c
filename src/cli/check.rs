use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::sources::Sources;
use super::{Exit, block_on, complain, say};
use crate::config::Config;
use crate::relay::findings::{self, Finding, Mend, Severity, SlotUse};
use crate::sink::{self, SinkOptions};
use crate::source::postgres::{Database, Facts, SnapshotMode, try_replication_login};

/// How long brokers may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// `outboxd check`
#[derive(Debug, Args)]
pub(super) struct Check {
    /// Connectors' configurations: Kafka Connect JSON, or the same as .properties.
    #[arg(value_name = "FILE", required = true)]
    connectors: Vec<PathBuf>,
    #[command(flatten)]
    sources: Sources,
}

impl Check {
    /// Ends with the worst of all connectors: configuration that cannot be used, then what
    /// `run` refuses, then what it waits for.
    pub(super) fn execute(self) -> Exit {
        let mut worst = Severity::Ok;
        let mut unusable = false;
        for connector in &self.connectors {
            let loaded = match self.sources.load(Some(connector.clone())) {
                Ok(loaded) => loaded,
                Err(errors) => {
                    complain(
                        &format_args!("{}: {errors}", connector.display()),
                        Exit::Usage,
                    );
                    unusable = true;
                    continue;
                }
            };
            let mut found: Vec<Finding> = loaded
                .warnings
                .iter()
                .map(findings::of_configuration)
                .collect();
            match block_on(look(&loaded.config)) {
                Ok(more) => found.extend(more),
                Err(error) => return complain(&error, Exit::Failed),
            }
            say(&format_args!(
                "{}: connector {}\n",
                connector.display(),
                loaded.config.name
            ));
            found.iter().for_each(|finding| say(&paragraph(finding)));
            say(&verdict(&found));
            worst = found
                .iter()
                .map(|finding| finding.severity)
                .fold(worst, Severity::max);
        }
        match worst {
            _ if unusable => Exit::Usage,
            Severity::Error => Exit::Preflight,
            Severity::Wait => Exit::Failed,
            Severity::Warning | Severity::Ok => Exit::Clean,
        }
    }
}

/// Looks at both ends at once; what is wrong with one keeps nothing of the other back.
async fn look(config: &Config) -> Vec<Finding> {
    let brokers = async {
        match &config.sink {
            SinkOptions::Kafka(kafka) => Some(sink::inspect_kafka(kafka, PATIENCE).await),
            SinkOptions::Stdout | SinkOptions::Null => None,
        }
    };
    let ((mut found, routed), brokers) = tokio::join!(look_at_database(config), brokers);
    if let Some(asked) = brokers {
        let (topics, unroutable) = findings::topics(&config.router, &routed);
        found.extend(unroutable);
        found.extend(findings::of_broker(&asked, &topics));
    }
    found
}

/// The findings, and what the rows there are now are routed by.
async fn look_at_database(config: &Config) -> (Vec<Finding>, Vec<String>) {
    let source = &config.source;
    let looking = async {
        let database = Database::connect(source).await?;
        let facts = database.facts(source).await?;
        Ok((database, facts))
    };
    let (database, facts) = match looking.await {
        Ok(looked) => looked,
        Err(error) => return (vec![findings::of_login(&error, source)], Vec::new()),
    };
    let mut found = findings::of_database(&facts, config, SlotUse::Unknown);
    let may_replicate = facts
        .role
        .as_ref()
        .is_some_and(|role| role.superuser || role.replication);
    // Without the right it fails for a reason that is among the findings already.
    if may_replicate && let Err(error) = try_replication_login(source, database.server()).await {
        found.push(findings::of_replication_login(&error, source));
    }
    found.extend(rows_before_the_slot(&database, &facts, config).await);
    (found, routed_values(&database, &facts, config).await)
}

async fn rows_before_the_slot(database: &Database, facts: &Facts, config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    if facts.stream.slot.is_some() || config.source.snapshot == SnapshotMode::NoData {
        return found;
    }
    for outbox in &facts.stream.tables {
        // Where it cannot be read, the missing right is among the findings.
        if let Ok(true) = database.has_rows(&outbox.table).await {
            found.push(findings::of_rows_before_the_slot(&outbox.table.name));
        }
    }
    found
}

/// Empty where the table cannot be read: that is a finding already.
async fn routed_values(database: &Database, facts: &Facts, config: &Config) -> Vec<String> {
    let mut values = Vec::new();
    for outbox in &facts.stream.tables {
        let column = &config.router.route_column;
        values.extend(
            database
                .some_values(&outbox.table, column)
                .await
                .unwrap_or_default(),
        );
    }
    values
}

/// One finding, its remedy set off below it so that SQL can be copied.
fn paragraph(finding: &Finding) -> String {
    let word = match finding.severity {
        Severity::Ok => "ok",
        Severity::Warning => "warning",
        Severity::Wait => "not now",
        Severity::Error => "error",
    };
    let mut text = format!("{word}: {}\n", finding.what);
    match &finding.mend {
        None => {}
        Some(Mend::Sql(sql)) => sql
            .lines()
            .for_each(|line| text.push_str(&format!("    {line}\n"))),
        Some(Mend::Do(what)) => text.push_str(&format!("    -> {what}\n")),
    }
    text
}

fn verdict(found: &[Finding]) -> String {
    let count = |severity| found.iter().filter(|f| f.severity == severity).count();
    let (errors, waits, warnings) = (
        count(Severity::Error),
        count(Severity::Wait),
        count(Severity::Warning),
    );
    let outlook = match (errors, waits) {
        (0, 0) => "`outboxd run` can start.",
        (0, _) => "`outboxd run` would start, and wait.",
        _ => "`outboxd run` must not start like this.",
    };
    format!("errors: {errors}, to wait for: {waits}, warnings: {warnings}; {outlook}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_stands_by_itself_below_its_finding() {
        let finding = Finding {
            severity: Severity::Error,
            what: "Something is missing.".to_owned(),
            mend: Some(Mend::Sql("CREATE THIS;\nAND THAT;".to_owned())),
            at_its_place: false,
        };
        assert_eq!(
            paragraph(&finding),
            "error: Something is missing.\n    CREATE THIS;\n    AND THAT;\n"
        );
        assert!(verdict(&[finding]).starts_with("errors: 1, to wait for: 0, warnings: 0"));
    }
}
