//! What a workload does besides plain events, if asked to: everything else that stands in a real
//! database's log.

use std::fmt::Write as _;

use tokio_postgres::Transaction;
use uuid::Uuid;

use super::{Outcome, id};

/// As large as a record may be with everybody's default limits, and a little less.
pub const LARGE: usize = 900_000;

/// Before the events of a transaction: a change of the table's shape, a large event, or a logical
/// message, each once in a while.
pub(super) async fn before(
    transaction: &Transaction<'_>,
    random: &mut fastrand::Rng,
) -> Outcome<()> {
    let statement = match random.u16(..) {
        // Every 250th and so on.
        0..=130 => "ALTER TABLE outbox ADD COLUMN IF NOT EXISTS extra text DEFAULT 'x'",
        131..=262 => "ALTER TABLE outbox DROP COLUMN IF EXISTS extra",
        263..=524 => "SELECT pg_logical_emit_message(true, 'app', repeat('m', 5000))",
        525..=786 => "SELECT pg_logical_emit_message(false, 'app', 'now')",
        _ => return Ok(()),
    };
    transaction.batch_execute(statement).await
}

/// How many bytes the payload of the next event is filled with: none, for nearly all.
pub(super) fn filling(random: &mut fastrand::Rng) -> usize {
    match random.u16(..) {
        0..=20 => LARGE,
        21..=400 => 20_000,
        _ => 0,
    }
}

/// Adds the statement for one event, its payload filled up with so many bytes.
pub(super) fn add_event(sql: &mut String, key: usize, event: Uuid, filling: usize) {
    let _ = match filling {
        0 => write!(sql, "EXECUTE event('k{key}', '{event}');"),
        _ => write!(sql, "EXECUTE filled('k{key}', '{event}', {filling});"),
    };
}

/// A large event alone in its transaction.
pub async fn large_event(
    session: &mut tokio_postgres::Client,
    random: &mut fastrand::Rng,
) -> Outcome<()> {
    session.batch_execute(super::STATEMENTS).await?;
    let mut sql = String::new();
    let (key, event) = (random.usize(..super::KEYS), id(random));
    add_event(&mut sql, key, event, LARGE);
    session.batch_execute(&sql).await
}
