use std::time::Duration;

use super::error::RelayError;
use crate::model::{Lsn, TableName};
use crate::source::postgres::{
    CapturedTable, Database, PublicationChange, Server, SnapshotMode, SourceError, SourceOptions,
    TableFilter, create_slot, ensure_publication, find_slot, remember_slot, remembers_slot,
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
    /// The outbox tables there are.
    pub(super) tables: Vec<CapturedTable>,
}

/// Looks at the server and makes publication and slot where they are missing and may be made.
/// The publication comes first: a slot never sees one younger than itself.
///
/// `known_slot` says that this process has used the slot: then one that is missing was dropped,
/// and making another would lose what came in between (rule R8).
///
/// # Errors
/// Whatever stands against streaming; nothing was created when existing rows are the reason.
pub(super) async fn prepare(
    options: &SourceOptions,
    known_slot: bool,
) -> Result<Prepared, RelayError> {
    let database = Database::connect(options).await?;
    database.check_wal_level().await?;
    let mut tables = Vec::new();
    for table in database.tables().await? {
        if includes(&options.tables, &table.name)? {
            tables.push(table);
        }
    }
    if tables.is_empty() {
        return Err(SourceError::Unusable(format!(
            "no table of database {} is matched by table.include.list (as schema.table, without regard to case), so there is no outbox to read; create the table or mend the list",
            options.database
        ))
        .into());
    }
    let slot = find_slot(&database, &options.slot).await?;
    if slot.is_none() && (known_slot || remembers_slot(&database, options).await?) {
        return Err(RelayError::SlotGone {
            slot: options.slot.to_string(),
            publication: options.publication.to_string(),
        });
    }
    let existing_rows = match slot {
        Some(_) => None,
        None => rows_before_the_slot(&database, options, &tables).await?,
    };
    let change =
        ensure_publication(&database, &options.publication, options.autocreate, &tables).await?;
    match change {
        PublicationChange::None => {}
        PublicationChange::Created => {
            tracing::info!("Created publication {}.", options.publication)
        }
        PublicationChange::Altered => tracing::warn!(
            "Altered publication {} to publish exactly the tables of table.include.list.",
            options.publication
        ),
    }
    match slot {
        Some(slot) => {
            if let Some(pid) = slot.active_pid {
                return Err(SourceError::NotYet(format!(
                    "replication slot {} is read by the server process {pid}, another outboxd perhaps; waiting until it is free",
                    options.slot
                ))
                .into());
            }
        }
        None => {
            let lsn = create_slot(&database, &options.slot).await?;
            remember_slot(&database, options).await?;
            warn_of_first_start(options, lsn, existing_rows.as_deref());
        }
    }
    let configured = database.wal_sender_timeout().await?;
    Ok(Prepared {
        server: database.server().clone(),
        wal_sender_timeout: configured.unwrap_or(WAL_SENDER_TIMEOUT),
        set_wal_sender_timeout: configured.is_none().then_some(WAL_SENDER_TIMEOUT),
        tables,
    })
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
    tables: &[CapturedTable],
) -> Result<Option<String>, RelayError> {
    let mut found = Vec::new();
    for table in tables {
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
        if options.snapshot == SnapshotMode::Initial {
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
