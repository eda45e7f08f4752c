use std::str::FromStr;

use super::{Database, SourceError};
use crate::model::{Lsn, SlotName};

/// A replication slot as `pg_replication_slots` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotState {
    /// Up to where we confirmed; absent while the slot is being made.
    pub confirmed_flush: Option<Lsn>,
    /// The process that reads it now, if any.
    pub active_pid: Option<i32>,
}

/// Looks the slot up.
///
/// # Errors
/// When it exists but cannot serve us: physical, of another plugin, of another database, or
/// lost because the server removed log that it needed.
pub async fn find_slot(
    database: &Database,
    slot: &SlotName,
) -> Result<Option<SlotState>, SourceError> {
    let rows = database
        .query(
            "looking up the replication slot",
            "SELECT slot_type, plugin::text, database::text, current_database()::text,
                    confirmed_flush_lsn::text, active_pid, wal_status
             FROM pg_catalog.pg_replication_slots WHERE slot_name = $1",
            &[&slot.as_str()],
        )
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let unusable = |why: String| {
        Err(SourceError::Unusable(format!(
            "replication slot {slot} {why}"
        )))
    };
    let (kind, plugin, database_of_slot, here): (String, Option<String>, Option<String>, String) =
        (row.get(0), row.get(1), row.get(2), row.get(3));
    if kind != "logical" {
        return unusable(
            "is a physical one, and outboxd needs a logical one; choose another slot.name"
                .to_owned(),
        );
    }
    if let Some(plugin) = plugin.filter(|plugin| plugin != "pgoutput") {
        return unusable(format!(
            "uses the plugin {plugin}, and outboxd needs pgoutput; choose another slot.name"
        ));
    }
    if let Some(other) = database_of_slot.filter(|database| *database != here) {
        return unusable(format!(
            "belongs to database {other}, and database.dbname is {here}; choose another slot.name"
        ));
    }
    if row.get::<_, Option<String>>(6).as_deref() == Some("lost") {
        return unusable(
            "is lost: the server removed log that it still needed (max_slot_wal_keep_size), so events may be missing; compare outbox and topics, then drop the slot and start anew".to_owned(),
        );
    }
    Ok(Some(SlotState {
        confirmed_flush: row
            .get::<_, Option<String>>(4)
            .and_then(|text| Lsn::from_str(&text).ok()),
        active_pid: row.get(5),
    }))
}

/// Makes the slot and returns the position from which it will deliver. Waits for transactions
/// that are open now.
///
/// # Errors
/// The server's refusal: no right, or no slot left.
pub async fn create_slot(database: &Database, slot: &SlotName) -> Result<Lsn, SourceError> {
    let row = database
        .query_one(
            "creating the replication slot",
            "SELECT lsn::text FROM pg_catalog.pg_create_logical_replication_slot($1::text::name, 'pgoutput')",
            &[&slot.as_str()],
        )
        .await?;
    let text: String = row.get(0);
    text.parse().map_err(|error| SourceError::Protocol {
        doing: "creating the replication slot",
        what: format!("{error}"),
    })
}
