//! PostgreSQL as a source: a logical replication slot read through pgoutput.
//!
//! Two kinds of session are used. *Ordinary SQL* ([`Database`], tokio-postgres) looks at and
//! prepares the publication and the slot and reads the catalog. The *replication connection*
//! ([`ReplicationStream`], our own on postgres-protocol, since no client library speaks
//! CopyBoth) carries the log one way and positions the other. Both are connected and logged in by
//! the same code, which hands tokio-postgres a session that is ready.

mod administer;
mod auth;
mod catalog;
mod client_certificate;
mod connection;
mod database;
mod error;
mod frame;
mod inspect;
mod lag;
mod logged_in;
mod login;
mod options;
mod password;
pub mod pgoutput;
mod publication;
mod server_list;
mod slot;
mod socket;
mod stream;
mod table_filter;
mod tls;
pub mod walmsg;

pub use administer::password_verifier;
pub use catalog::{ColumnFacts, TableFacts};
pub use client_certificate::ClientCertificate;
pub use database::{CapturedTable, Database};
pub use error::SourceError;
pub use frame::Inbound;
pub use inspect::{
    APPLICATION_NAME, Facts, OutboxColumn, OutboxFacts, Pending, PublicationFacts, PublishedTable,
    RoleFacts, ServerFacts, SlotFacts, SlotHolder, StreamFacts, slot_mark, try_replication_login,
};
pub use lag::view_slot;
pub use options::{
    Authorities, PublicationAutocreate, SnapshotMode, SourceOptions, SslMode, TlsOptions,
};
pub use password::Password;
pub use publication::{
    add_to_publication, create_publication, publication_addition, publication_comment,
    publication_creation, remember_slot,
};
pub use server_list::{Server, ServerList, ServerListError};
pub use slot::create_slot;
pub use stream::{ReplicationStream, StreamEvent, SystemIdentity};
pub use table_filter::{TableFilter, TableFilterError};
