//! What the server says of everything a connector stands on. Facts only: what is wrong with
//! them is judged in `relay::findings`. Nothing here changes anything.
//!
//! Catalog views differ between versions, so the wide ones are read as JSON and their keys
//! taken by presence.

mod pending;
mod publication;
mod role;
mod server;
mod slot;
mod table;

pub use pending::Pending;
pub use publication::{PublicationFacts, PublishedTable, slot_mark};
pub use role::RoleFacts;
pub use server::ServerFacts;
pub use slot::{SlotFacts, SlotHolder};
pub use table::{OutboxColumn, OutboxFacts};

use super::login::{self, Purpose};
use super::{Database, Server, SourceError, SourceOptions};

/// What every session of ours calls itself (`application_name`).
pub const APPLICATION_NAME: &str = "outboxd";

/// Everything a connector stands on at the database's end, at one moment.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Settings and limits of the server.
    pub server: ServerFacts,
    /// The connector's role; `None` when it does not exist, so somebody else is looking.
    pub role: Option<RoleFacts>,
    /// What the stream is made of.
    pub stream: StreamFacts,
}

/// What the stream is made of. All of it can change under a running relay (rule R8).
#[derive(Debug, Clone)]
pub struct StreamFacts {
    /// The slot of `slot.name`, if there is one.
    pub slot: Option<SlotFacts>,
    /// The publication of `publication.name`, if there is one.
    pub publication: Option<PublicationFacts>,
    /// The tables that `table.include.list` and its kin name, by schema and name.
    pub tables: Vec<OutboxFacts>,
}

impl Database {
    /// Looks at everything, at rights as those of the role we are logged in as.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub async fn facts(&self, options: &SourceOptions) -> Result<Facts, SourceError> {
        self.facts_of(options, None).await
    }

    /// Looks at everything, at rights as those of the connector's role, whoever is logged in.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub async fn facts_for_role(&self, options: &SourceOptions) -> Result<Facts, SourceError> {
        self.facts_of(options, Some(&options.user)).await
    }

    async fn facts_of(
        &self,
        options: &SourceOptions,
        role: Option<&str>,
    ) -> Result<Facts, SourceError> {
        Ok(Facts {
            server: self.server_facts().await?,
            role: self.role_facts(role).await?,
            stream: self.stream_facts_of(options, role).await?,
        })
    }

    /// Looks at slot, publication and tables.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub async fn stream_facts(&self, options: &SourceOptions) -> Result<StreamFacts, SourceError> {
        self.stream_facts_of(options, None).await
    }

    async fn stream_facts_of(
        &self,
        options: &SourceOptions,
        role: Option<&str>,
    ) -> Result<StreamFacts, SourceError> {
        Ok(StreamFacts {
            slot: self.slot_facts(&options.slot).await?,
            publication: self.publication_facts(options, role).await?,
            tables: self.outbox_facts(&options.tables, role).await?,
        })
    }
}

/// Opens a replication connection and closes it: only trying shows whether `pg_hba.conf`, a
/// pooler in between or the limit of walsenders stand against it.
///
/// # Errors
/// What stands against it.
pub async fn try_replication_login(
    options: &SourceOptions,
    server: &Server,
) -> Result<(), SourceError> {
    login::open(options, server, Purpose::Replication)
        .await
        .map(drop)
}
