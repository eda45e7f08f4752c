use postgres_protocol::escape::escape_identifier;

use super::super::{Database, SourceError, SourceOptions};
use super::StreamFacts;

/// Reading ahead of a slot decodes its log, so no more than this many bytes of it.
const MAX_LAG_BYTES: u64 = 64 * 1024 * 1024;
/// And no more than this many changes, checked by the server after each transaction.
const MAX_CHANGES: i32 = 10_000;

/// How many inserted rows of the outbox a slot has still to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pending {
    /// Exactly this many.
    Rows(u64),
    /// This many or more: looking ended there.
    AtLeast(u64),
    /// It cannot be told; the reason.
    Unknown(String),
}

impl Database {
    /// Counts what a slot has still to deliver, without moving it. Only a slot that nobody
    /// reads can be looked into, and for the moment of looking nobody else can read it.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn pending(
        &self,
        stream: &StreamFacts,
        options: &SourceOptions,
    ) -> Result<Pending, SourceError> {
        if let Some(known) = without_looking(stream) {
            return Ok(known);
        }
        let names = escape_identifier(options.publication.as_str());
        let rows = self
            .query(
                "looking into the replication slot",
                // Of each message the kind, and of an Insert the relation it is about
                // (PostgreSQL documentation, "Logical Replication Message Formats").
                "SELECT substring(data FROM 1 FOR 5), count(*)
                 FROM pg_catalog.pg_logical_slot_peek_binary_changes(
                     $1, NULL, $2, 'proto_version', '1', 'publication_names', $3)
                 GROUP BY 1",
                &[&options.slot.as_str(), &MAX_CHANGES, &names],
            )
            .await?;
        let (mut inserts, mut changes) = (0_u64, 0_u64);
        for row in &rows {
            let head: &[u8] = row.get(0);
            let count = u64::try_from(row.get::<_, i64>(1)).unwrap_or_default();
            changes += count;
            if is_insert_of(head, stream) {
                inserts += count;
            }
        }
        Ok(if changes < u64::from(MAX_CHANGES.unsigned_abs()) {
            Pending::Rows(inserts)
        } else {
            Pending::AtLeast(inserts)
        })
    }
}

/// What can be told by the slot's row alone; `None` when its log has to be looked into.
fn without_looking(stream: &StreamFacts) -> Option<Pending> {
    let unknown = |why: &str| Some(Pending::Unknown(why.to_owned()));
    let Some(slot) = &stream.slot else {
        return unknown("there is no slot");
    };
    let ours =
        slot.plugin.as_deref() == Some("pgoutput") && slot.database == Some(slot.here.clone());
    if !ours || slot.is_lost() {
        return unknown("the slot cannot be read");
    }
    match slot.confirmed_lag_bytes() {
        // The reader has confirmed to the end of the log.
        Some(0) => Some(Pending::Rows(0)),
        None => unknown("the slot is not ready"),
        Some(_) if slot.active => unknown("the slot is being read"),
        Some(lag) if lag > MAX_LAG_BYTES => unknown("the log since then is too long to look into"),
        Some(_) if stream.publication.is_none() => unknown("the publication is missing"),
        Some(_) => None,
    }
}

/// Whether a message's first five bytes begin an Insert into one of the outbox tables.
fn is_insert_of(head: &[u8], stream: &StreamFacts) -> bool {
    let [b'I', id @ ..] = head else {
        return false;
    };
    let ids = || stream.tables.iter().map(|outbox| outbox.table.id.0);
    <[u8; 4]>::try_from(id).is_ok_and(|id| ids().any(|known| known == u32::from_be_bytes(id)))
}
