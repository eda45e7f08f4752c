//! Whatever is wrong with what the stream stands on is told, and nothing is passed over in
//! silence, made or moved (rule R8).

mod at_start;
mod while_running;

use crate::support::database::TestDatabase;
use crate::support::services::postgres_version;

/// All that outboxd could make or move: the slot with its position, and the publications with
/// what they publish.
async fn foundations(database: &TestDatabase) -> Option<String> {
    database
        .ask(&format!(
            "SELECT jsonb_build_object(
                'slot', (SELECT jsonb_build_object('plugin', plugin, 'confirmed', confirmed_flush_lsn)
                         FROM pg_replication_slots WHERE slot_name = '{}'),
                'publications', (SELECT jsonb_agg(to_jsonb(p) || jsonb_build_object('comment', obj_description(p.oid)))
                                 FROM pg_publication p),
                'tables', (SELECT jsonb_agg(t ORDER BY t) FROM pg_publication_tables t))::text",
            database.name
        ))
        .await
}

/// What is said of a slot that holds more than the server lets it. Which limit it was is in
/// `pg_replication_slots` from 17 on.
fn slot_is_lost() -> &'static str {
    if postgres_version() < 17 {
        "slot $N is lost (wal_status=lost)"
    } else {
        "slot $N is lost (wal_removed)"
    }
}

/// Writes more log than `max_slot_wal_keep_size` (1 MB) lets a slot that stands still keep.
async fn outgrow_the_slot(database: &TestDatabase) {
    for _ in 0..3 {
        database
            .execute("SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000000)); SELECT pg_switch_wal()")
            .await;
    }
    database.execute("CHECKPOINT").await;
}
