use std::time::Duration;

use super::error::RelayError;
use super::findings::{self, Finding, Shapes, SlotUse, Warned};
use crate::config::Config;
use crate::model::{Lsn, TableName};
use crate::source::postgres::{
    Database, OutboxFacts, PublicationAutocreate, Server, SnapshotMode, SourceError, SourceOptions,
    StreamFacts, TableFilter, add_to_publication, create_publication, create_slot, remember_slot,
};

/// A server that would never notice our death is told to notice after this long.
const WAL_SENDER_TIMEOUT: Duration = Duration::from_secs(60);
/// Counting existing rows ends here.
const COUNT_LIMIT: i64 = 1_000_000;

/// What the stream needs to know of the server.
pub(super) struct Prepared {
    /// The one that was looked at, and the only one these facts hold for.
    pub(super) server: Server,
    /// The session's effective `wal_sender_timeout`.
    pub(super) wal_sender_timeout: Duration,
    /// To be set in the session, where the server's own is switched off.
    pub(super) set_wal_sender_timeout: Option<Duration>,
    /// Up to where the slot was confirmed.
    pub(super) confirmed: Option<Lsn>,
    /// The outbox tables there are.
    pub(super) tables: Vec<OutboxFacts>,
    /// What was found, and said where it has to be.
    pub(super) found: Vec<Finding>,
}

/// Looks at the server and makes publication and slot where they are missing and may be made.
/// The publication comes first: a slot never sees one younger than itself.
///
/// # Errors
/// Whatever stands against streaming; then nothing was created or altered.
pub(super) async fn prepare(
    config: &Config,
    used: SlotUse,
    warned: &mut Warned,
    shapes: &Shapes,
) -> Result<Prepared, RelayError> {
    let options = &config.source;
    let database = Database::connect(options).await?;
    let facts = database.facts(options).await?;
    let found = findings::of_database(&facts, config, used);
    warned.say(&found);
    let stream = &facts.stream;
    if let Some(unfit) = shapes.judge(&found, stream.slot.as_ref()) {
        return Err(unfit.into());
    }
    let tables = &stream.tables;
    match &stream.slot {
        Some(slot) => {
            if let Some(holder) = &slot.holder {
                return Err(SourceError::NotYet(format!(
                    "replication slot {} is read by the server process {}, another outboxd perhaps; waiting until it is free",
                    options.slot, holder.pid
                ))
                .into());
            }
        }
        None => {
            let existing_rows = rows_before_the_slot(&database, options, tables).await?;
            prepare_publication(&database, options, stream).await?;
            let lsn = create_slot(&database, &options.slot).await?;
            remember_slot(&database, options, stream.publication.as_ref()).await?;
            warn_of_first_start(options, lsn, existing_rows.as_deref());
        }
    }
    let configured = facts.server.wal_sender_timeout();
    Ok(Prepared {
        server: database.server().clone(),
        wal_sender_timeout: configured.unwrap_or(WAL_SENDER_TIMEOUT),
        set_wal_sender_timeout: configured.is_none().then_some(WAL_SENDER_TIMEOUT),
        confirmed: stream
            .slot
            .as_ref()
            .and_then(|slot| slot.confirmed_flush_lsn),
        tables: facts.stream.tables,
        found,
    })
}

/// Makes the publication, or adds to it what it lacks: only before there is a slot, which would
/// not see it.
async fn prepare_publication(
    database: &Database,
    options: &SourceOptions,
    stream: &StreamFacts,
) -> Result<(), SourceError> {
    let Some(publication) = &stream.publication else {
        create_publication(database, options, &stream.tables).await?;
        tracing::info!("Created publication {}.", options.publication);
        return Ok(());
    };
    let lacking = publication.lacks(&stream.tables);
    if options.autocreate == PublicationAutocreate::Filtered && !lacking.is_empty() {
        add_to_publication(database, options, &lacking).await?;
        tracing::warn!(
            "Added to publication {} what it lacked of table.include.list.",
            options.publication
        );
    }
    Ok(())
}

/// Whether the filters name the table.
///
/// # Errors
/// When one of their patterns gives up on it.
pub(super) fn includes(filter: &TableFilter, table: &TableName) -> Result<bool, SourceError> {
    filter
        .includes(table)
        .map_err(|error| SourceError::unmatchable(table, &error))
}

/// Counts the rows that the slot, not made yet, will never deliver; refuses to start where
/// they would have to be sent.
async fn rows_before_the_slot(
    database: &Database,
    options: &SourceOptions,
    tables: &[OutboxFacts],
) -> Result<Option<String>, RelayError> {
    let mut found = Vec::new();
    for OutboxFacts { table, .. } in tables {
        let count = match database.count_rows(table, COUNT_LIMIT).await {
            Ok(count) => count,
            // Without the right to read, nobody can say how many rows stay behind.
            Err(error)
                if error.sqlstate() == Some("42501")
                    && options.snapshot == SnapshotMode::NoData =>
            {
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if count == 0 {
            continue;
        }
        let rows = match count {
            1 => "1 row".to_owned(),
            COUNT_LIMIT => format!("{COUNT_LIMIT} rows or more"),
            count => format!("{count} rows"),
        };
        if options.snapshot != SnapshotMode::NoData {
            return Err(RelayError::NeedsSnapshot {
                slot: options.slot.to_string(),
                table: table.name.clone(),
                rows,
            });
        }
        found.push(format!("{rows} of {}", table.name));
    }
    Ok((!found.is_empty()).then(|| found.join(", ")))
}

/// Once in a slot's life, said loudly: from here on the server keeps log for us, and what came
/// before is not sent.
fn warn_of_first_start(options: &SourceOptions, lsn: Lsn, existing_rows: Option<&str>) {
    let left_behind = existing_rows.map_or_else(
        || "No rows were there before it".to_owned(),
        |rows| format!("{rows} were there before it and will not be sent (snapshot.mode=no_data)"),
    );
    tracing::warn!(
        slot = %options.slot,
        lsn = %lsn,
        "Created replication slot {} at {lsn}. {left_behind}. While outboxd does not run, the server keeps all log from the slot's position on.",
        options.slot
    );
}
