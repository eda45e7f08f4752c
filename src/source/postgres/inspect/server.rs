use std::collections::HashMap;
use std::time::Duration;

use super::super::{Database, SourceError};

/// Settings and limits of a server, and how much of them is used.
#[derive(Debug, Clone)]
pub struct ServerFacts {
    /// `server_version_num`, such as 170011.
    pub version: i32,
    /// The database we are connected to.
    pub database: String,
    /// Whether it is a standby.
    pub in_recovery: bool,
    /// Whether it has the role `rds_replication`, as Amazon's have.
    pub on_rds: bool,
    /// Replication slots there are, of all databases.
    pub slots: i64,
    /// Physical replication slots among them: a standby is likely.
    pub physical_slots: i64,
    /// Walsenders that run, of all databases.
    pub walsenders: i64,
    /// Settings by name, as our session sees them: value in its base unit, and as shown.
    pub settings: HashMap<String, (String, String)>,
}

/// The settings that matter. Those a version does not have are absent from the answer.
const SETTINGS: [&str; 7] = [
    "wal_level",
    "max_replication_slots",
    "max_wal_senders",
    "wal_sender_timeout",
    "max_slot_wal_keep_size",
    "idle_replication_slot_timeout",
    "synchronous_standby_names",
];

impl ServerFacts {
    /// A setting as `SHOW` prints it; `None` where the version has no such setting.
    pub fn shown(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(|(_, shown)| shown.as_str())
    }

    /// A setting as a number in its base unit (PostgreSQL documentation, "pg_settings").
    pub fn number(&self, name: &str) -> Option<i64> {
        self.settings.get(name)?.0.parse().ok()
    }

    /// `wal_sender_timeout` for this role; `None` where it is switched off.
    pub fn wal_sender_timeout(&self) -> Option<Duration> {
        let millis = u64::try_from(self.number("wal_sender_timeout")?).ok()?;
        (millis > 0).then(|| Duration::from_millis(millis))
    }
}

impl Database {
    pub(super) async fn server_facts(&self) -> Result<ServerFacts, SourceError> {
        const DOING: &str = "reading the server's settings";
        let row = self
            .query_one(
                DOING,
                "SELECT pg_catalog.current_setting('server_version_num')::int,
                        pg_catalog.current_database()::text,
                        pg_catalog.pg_is_in_recovery(),
                        EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'rds_replication'),
                        (SELECT count(*) FROM pg_catalog.pg_replication_slots),
                        (SELECT count(*) FROM pg_catalog.pg_replication_slots WHERE slot_type = 'physical'),
                        (SELECT count(*) FROM pg_catalog.pg_stat_replication)",
                &[],
            )
            .await?;
        let settings = self
            .query(
                DOING,
                "SELECT name, setting, pg_catalog.current_setting(name)
                 FROM pg_catalog.pg_settings WHERE name = ANY($1)",
                &[&SETTINGS.as_slice()],
            )
            .await?;
        Ok(ServerFacts {
            version: row.get(0),
            database: row.get(1),
            in_recovery: row.get(2),
            on_rds: row.get(3),
            slots: row.get(4),
            physical_slots: row.get(5),
            walsenders: row.get(6),
            settings: settings
                .iter()
                .map(|row| (row.get(0), (row.get(1), row.get(2))))
                .collect(),
        })
    }
}
