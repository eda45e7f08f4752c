use std::path::PathBuf;
use std::time::Duration;

use super::{ClientCertificate, Password, ServerList, TableFilter};
use crate::model::{PublicationName, SlotName};

/// How to reach the database and what to read from it.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// Where the database may be (`database.hostname`, `database.port`, 5432).
    pub servers: ServerList,
    /// Role to log in as (`database.user`).
    pub user: String,
    /// Its password, if one is given (`database.password`).
    pub password: Option<Password>,
    /// Database that holds the outbox (`database.dbname`).
    pub database: String,
    /// Whether and how the connection is encrypted.
    pub tls: TlsOptions,
    /// Longest time to reach one server and log in (`driver.connectTimeout`, 10 s).
    pub connect_timeout: Duration,
    /// Whether idle connections are probed (`database.tcpKeepAlive`).
    pub tcp_keepalive: bool,
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
    /// Whose signature on the server's certificate counts (`database.sslrootcert`).
    pub authorities: Authorities,
    /// Our own certificate (`database.sslcert`, `database.sslkey`).
    pub client: Option<ClientCertificate>,
}

/// Certificate authorities that are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authorities {
    /// Those of this system: nothing was set, or `system`.
    System,
    /// Those in a PEM file.
    File(PathBuf),
}

/// `database.sslmode`, with libpq's meaning (PostgreSQL documentation, "SSL Support").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    /// Never encrypted.
    Disable,
    /// In the clear, and encrypted only if the server insists.
    Allow,
    /// Encrypted if the server can, else in the clear. Debezium's default.
    Prefer,
    /// Always encrypted; the server's certificate is checked only where `database.sslrootcert`
    /// is set, as by verify-ca.
    Require,
    /// Always encrypted; the certificate has to be signed by a trusted authority.
    VerifyCa,
    /// As verify-ca, and the certificate has to name the host.
    VerifyFull,
}

/// `publication.autocreate.mode`, with Debezium's meaning
/// (`PostgresReplicationConnection.initPublication`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicationAutocreate {
    /// Never create or alter; missing is an error.
    Disabled,
    /// Create for the tables that the filters name, and add to one that lacks some, as long as
    /// there is no slot. Debezium also takes others away, which may be somebody else's.
    Filtered,
    /// Nothing said: create for the tables that the filters name; use an existing one as it is.
    /// Debezium's default is `all_tables`, which uses an existing one likewise.
    Unsaid,
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
    /// They would have to be sent first (`initial`, or nothing said); until snapshots exist, a
    /// start with such rows and no slot is refused.
    Initial,
    /// As `Initial`, also when a slot that was in use is missing.
    WhenNeeded,
}
