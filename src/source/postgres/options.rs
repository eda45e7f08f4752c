use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use super::TableFilter;
use crate::model::{PublicationName, SlotName};

/// How to reach the database and what to read from it.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// Host name or address (`database.hostname`).
    pub host: String,
    /// TCP port (`database.port`, 5432).
    pub port: u16,
    /// Role to log in as (`database.user`).
    pub user: String,
    /// Its password, if one is given (`database.password`).
    pub password: Option<SecretString>,
    /// Database that holds the outbox (`database.dbname`).
    pub database: String,
    /// Whether and how the connection is encrypted.
    pub tls: TlsOptions,
    /// The replication slot (`slot.name`).
    pub slot: SlotName,
    /// The publication (`publication.name`).
    pub publication: PublicationName,
    /// What to do when the publication is missing or differs (`publication.autocreate.mode`).
    pub autocreate: PublicationAutocreate,
    /// Which tables are outboxes (`table.include.list`, `table.exclude.list` …).
    pub tables: TableFilter,
    /// What to do about rows that exist before the slot does (`snapshot.mode`).
    pub snapshot: SnapshotMode,
    /// Longest time between two status updates (`status.update.interval.ms`, 10 s).
    pub status_interval: Duration,
}

/// TLS settings of the database connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsOptions {
    /// `database.sslmode`.
    pub mode: SslMode,
    /// PEM file with the authorities to trust (`database.sslrootcert`).
    pub root_cert: Option<PathBuf>,
}

/// `database.sslmode`, with libpq's meaning (PostgreSQL documentation, "SSL Support").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    /// Never encrypted.
    Disable,
    /// Encrypted if the server can, else in the clear. Debezium's default.
    Prefer,
    /// Always encrypted; the server's certificate is not checked.
    Require,
    /// Always encrypted; certificate and host name are checked.
    VerifyFull,
}

/// `publication.autocreate.mode`, with Debezium's meaning
/// (`PostgresReplicationConnection.initPublication`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicationAutocreate {
    /// Never create or alter; missing is an error.
    Disabled,
    /// Create for the tables that the filters name, and keep it equal to them.
    Filtered,
    /// Create `FOR ALL TABLES`; use an existing one as it is.
    AllTables,
    /// Create an empty one; use an existing one as it is.
    NoTables,
}

/// `snapshot.mode`: what happens to rows written before the slot existed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotMode {
    /// They are not sent (`no_data`, and its old name `never`).
    NoData,
    /// They would have to be sent first (`initial`, `when_needed`, or nothing said); until
    /// snapshots exist, a start with such rows and no slot is refused.
    Initial,
}
