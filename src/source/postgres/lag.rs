use serde_json::Value;

use super::{Database, SourceError};
use crate::model::{Lsn, SlotName, SlotView, WalStatus};

const DOING: &str = "looking at the replication slot";

/// Looks at the slot from outside, without touching it; `None` when it does not exist. Works on
/// a primary and on a standby, and needs no right but to connect.
///
/// # Errors
/// When the server cannot be asked.
pub async fn view_slot(
    database: &Database,
    slot: &SlotName,
) -> Result<Option<SlotView>, SourceError> {
    // The whole row, with whatever columns this version has. A standby has no end of its own,
    // only what it has replayed.
    let row = database
        .query_one(
            DOING,
            "SELECT to_jsonb(s)::text,
                    (CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
                          ELSE pg_catalog.pg_current_wal_lsn() END)::text
             FROM (VALUES ($1::text)) AS wanted (slot_name)
             LEFT JOIN pg_catalog.pg_replication_slots s ON s.slot_name = wanted.slot_name",
            &[&slot.as_str()],
        )
        .await?;
    let (columns, wal_end): (Option<String>, Option<String>) = (row.get(0), row.get(1));
    let Some(columns) = columns else {
        return Ok(None);
    };
    let columns = serde_json::from_str(&columns).map_err(|error| SourceError::Protocol {
        doing: DOING,
        what: error.to_string(),
    })?;
    Ok(Some(view(
        &columns,
        wal_end.and_then(|text| text.parse().ok()),
    )))
}

/// Reads the columns by name: which there are depends on the server's version.
fn view(columns: &Value, wal_end: Option<Lsn>) -> SlotView {
    let text = |column: &str| columns.get(column).and_then(Value::as_str);
    let number = |column: &str| columns.get(column).and_then(Value::as_i64);
    let lsn = |column: &str| text(column).and_then(|text| text.parse::<Lsn>().ok());
    let distance = |from: Option<Lsn>| Some(wal_end?.bytes_since(from?));
    let (restart, confirmed_flush) = (lsn("restart_lsn"), lsn("confirmed_flush_lsn"));
    SlotView {
        retained_wal: distance(restart),
        confirmed_lag: distance(confirmed_flush),
        safe_wal_size: number("safe_wal_size"),
        wal_status: text("wal_status").and_then(WalStatus::of),
        active: columns.get("active").and_then(Value::as_bool) == Some(true),
        active_pid: number("active_pid"),
        confirmed_flush,
        restart,
        inactive_since: text("inactive_since").map(str::to_owned),
        invalidation_reason: text("invalidation_reason").map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_slot_of_version_14_is_read() {
        let columns = json!({
            "plugin": "pgoutput", "slot_name": "claims", "slot_type": "logical", "datoid": 5,
            "database": "claims", "temporary": false, "active": true, "active_pid": 4711,
            "xmin": null, "catalog_xmin": "734", "restart_lsn": "0/1000000",
            "confirmed_flush_lsn": "0/1000100", "wal_status": "extended",
            "safe_wal_size": -16_777_216, "two_phase": false,
        });
        let expected = SlotView {
            retained_wal: Some(0x200),
            confirmed_lag: Some(0x100),
            safe_wal_size: Some(-16_777_216),
            wal_status: Some(WalStatus::Extended),
            active: true,
            active_pid: Some(4711),
            confirmed_flush: Some(Lsn::new(0x100_0100)),
            restart: Some(Lsn::new(0x100_0000)),
            inactive_since: None,
            invalidation_reason: None,
        };
        assert_eq!(view(&columns, Some(Lsn::new(0x100_0200))), expected);
    }

    #[test]
    fn a_lost_slot_of_version_18_has_hardly_anything_left() {
        let columns = json!({
            "slot_name": "claims", "active": false, "active_pid": null, "restart_lsn": null,
            "confirmed_flush_lsn": "0/1000100", "wal_status": "lost", "safe_wal_size": null,
            "inactive_since": "2026-03-04T05:06:07.8+00:00", "conflicting": false,
            "invalidation_reason": "idle_timeout", "two_phase_at": null,
        });
        let view = view(&columns, Some(Lsn::new(0x100_0200)));
        assert_eq!(view.wal_status, Some(WalStatus::Lost));
        assert_eq!((view.retained_wal, view.safe_wal_size), (None, None));
        assert_eq!(view.invalidation_reason.as_deref(), Some("idle_timeout"));
        assert!(view.inactive_since.is_some() && !view.active);
    }

    #[test]
    fn what_is_missing_or_of_another_kind_is_not_known() {
        let columns = json!({"active": "yes", "restart_lsn": 7, "wal_status": "evaporated"});
        assert_eq!(view(&columns, None), SlotView::default());
    }
}
