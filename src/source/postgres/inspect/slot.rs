use serde::{Deserialize, Deserializer};

use super::super::{Database, SourceError};
use crate::model::{Lsn, SlotName};

/// A row of `pg_replication_slots`, with who reads it and where the log ends. What a version
/// does not have is absent (PostgreSQL documentation, "pg_replication_slots").
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SlotFacts {
    /// `logical` or `physical`.
    pub slot_type: String,
    /// The output plugin of a logical slot.
    pub plugin: Option<String>,
    /// The database of a logical slot.
    pub database: Option<String>,
    /// Whether it goes away with its session.
    pub temporary: bool,
    /// Whether a process reads it now.
    pub active: bool,
    /// From where on the server keeps log for it; absent while it is being made, or when lost.
    #[serde(deserialize_with = "lsn")]
    pub restart_lsn: Option<Lsn>,
    /// Up to where we confirmed; absent while it is being made.
    #[serde(deserialize_with = "lsn")]
    pub confirmed_flush_lsn: Option<Lsn>,
    /// `reserved`, `extended`, `unreserved` or `lost`; absent while it is being made.
    pub wal_status: Option<String>,
    /// Bytes of log that can still be written before it is in danger; absent without a limit.
    pub safe_wal_size: Option<i64>,
    /// Whether transactions are decoded at PREPARE.
    pub two_phase: bool,
    /// Whether it was invalidated by a conflict with recovery (16 and later).
    pub conflicting: Option<bool>,
    /// Whether standbys keep a copy of it (17 and later).
    pub failover: Option<bool>,
    /// Whether it is such a copy (17 and later).
    pub synced: Option<bool>,
    /// Since when nobody has read it (17 and later).
    pub inactive_since: Option<String>,
    /// Why it can no longer be used (17 and later).
    pub invalidation_reason: Option<String>,
    /// Who reads it.
    pub holder: Option<SlotHolder>,
    /// The database we are connected to.
    pub here: String,
    /// The end of the log that is safe on disk.
    #[serde(deserialize_with = "lsn")]
    pub server_lsn: Option<Lsn>,
}

/// The server process that reads a slot. Of another role's session only the id shows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SlotHolder {
    /// The process's id on the server.
    pub pid: i32,
    /// What the client calls itself.
    pub application: Option<String>,
    /// The role it is logged in as.
    pub role: Option<String>,
    /// The client's address; absent over a Unix socket.
    pub client: Option<String>,
    /// How far the log was sent, if the process streams.
    #[serde(deserialize_with = "lsn")]
    pub sent_lsn: Option<Lsn>,
}

impl SlotFacts {
    /// Bytes of log the server keeps because of it.
    pub fn retained_bytes(&self) -> Option<u64> {
        Some(self.server_lsn?.bytes_since(self.restart_lsn?))
    }

    /// Bytes of log since the position confirmed last.
    pub fn confirmed_lag_bytes(&self) -> Option<u64> {
        Some(self.server_lsn?.bytes_since(self.confirmed_flush_lsn?))
    }

    /// Whether the server has given it up.
    pub fn is_lost(&self) -> bool {
        self.wal_status.as_deref() == Some("lost")
            || self.invalidation_reason.is_some()
            || self.conflicting == Some(true)
    }
}

impl Database {
    /// Looks the slot up, whatever its kind and state.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub async fn slot_facts(&self, slot: &SlotName) -> Result<Option<SlotFacts>, SourceError> {
        const DOING: &str = "looking up the replication slot";
        let rows = self
            .query(
                DOING,
                "SELECT (to_jsonb(s) || jsonb_build_object(
                            'here', pg_catalog.current_database(),
                            'server_lsn', CASE WHEN pg_catalog.pg_is_in_recovery()
                                THEN pg_catalog.pg_last_wal_replay_lsn()
                                ELSE pg_catalog.pg_current_wal_flush_lsn() END,
                            'holder', CASE WHEN s.active_pid IS NOT NULL THEN jsonb_build_object(
                                'pid', s.active_pid, 'application', a.application_name,
                                'role', a.usename, 'client', a.client_addr,
                                'sent_lsn', r.sent_lsn) END))::text
                 FROM pg_catalog.pg_replication_slots s
                 LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = s.active_pid
                 LEFT JOIN pg_catalog.pg_stat_replication r ON r.pid = s.active_pid
                 WHERE s.slot_name = $1",
                &[&slot.as_str()],
            )
            .await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let facts = serde_json::from_str(row.get(0)).map_err(|error| SourceError::Protocol {
            doing: DOING,
            what: error.to_string(),
        })?;
        Ok(Some(facts))
    }
}

fn lsn<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Lsn>, D::Error> {
    Option::<&str>::deserialize(deserializer)?
        .map(|text| text.parse().map_err(serde::de::Error::custom))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_old_and_new_servers_are_read() {
        let of_14: SlotFacts = serde_json::from_str(
            r#"{"slot_name": "s", "plugin": "pgoutput", "slot_type": "logical", "datoid": 5,
                "database": "d", "temporary": false, "active": true, "active_pid": 7, "xmin": null,
                "catalog_xmin": "731", "restart_lsn": "0/10", "confirmed_flush_lsn": "0/18",
                "wal_status": "reserved", "safe_wal_size": null, "two_phase": false, "here": "d",
                "server_lsn": "0/20", "holder": {"pid": 7, "application": "outboxd",
                "role": "postgres", "client": "::1", "sent_lsn": "0/20"}}"#,
        )
        .unwrap();
        assert_eq!(of_14.retained_bytes(), Some(16));
        assert_eq!(of_14.confirmed_lag_bytes(), Some(8));
        assert!(!of_14.is_lost() && of_14.failover.is_none());
        assert_eq!(of_14.holder.unwrap().pid, 7);

        let of_18: SlotFacts = serde_json::from_str(
            r#"{"slot_type": "logical", "restart_lsn": null, "confirmed_flush_lsn": "0/18",
                "wal_status": "lost", "two_phase": true, "two_phase_at": "0/1", "conflicting": false,
                "failover": true, "synced": false, "invalidation_reason": "idle_timeout",
                "inactive_since": "2026-01-01T00:00:00+00:00", "server_lsn": "0/20", "holder": null}"#,
        )
        .unwrap();
        assert!(of_18.is_lost() && of_18.two_phase);
        assert_eq!(of_18.retained_bytes(), None);
    }
}
