use super::{Database, SourceError};
use crate::model::{Lsn, SlotName};

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
