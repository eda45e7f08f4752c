use postgres_protocol::escape::escape_identifier;
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls};

use super::logged_in::LoggedIn;
use super::login::{self, Purpose};
use super::{Server, SourceError, SourceOptions};
use crate::model::{ErrorClass, RelationId, TableName};

/// An ordinary SQL session, for looking at the server and preparing it. Ends when dropped.
pub struct Database {
    client: Client,
    server: Server,
    /// Ends when the client is dropped, or the server ends the session.
    session: JoinHandle<Result<(), tokio_postgres::Error>>,
}

/// A table that the filters name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedTable {
    /// Its object identifier.
    pub id: RelationId,
    /// Schema and name.
    pub name: TableName,
    /// Whether updates of it can be published without making the application's own updates
    /// fail: it has a primary key, a replica identity index, or replica identity full.
    pub usable_identity: bool,
}

impl CapturedTable {
    /// The name as it enters SQL.
    pub fn quoted(&self) -> String {
        quoted(&self.name)
    }
}

/// A table's name as it enters SQL.
fn quoted(table: &TableName) -> String {
    format!(
        "{}.{}",
        escape_identifier(&table.schema),
        escape_identifier(&table.name)
    )
}

impl Database {
    /// Connects to the first server of the list that is a primary. Names are looked up now, and
    /// every address of a name is tried.
    ///
    /// # Errors
    /// When none can be used, with what stood against each (class retry). What a person has to
    /// mend ends the search, as libpq's does.
    pub async fn connect(options: &SourceOptions) -> Result<Self, SourceError> {
        let mut refusals = Vec::new();
        for host in options.servers.iter() {
            let servers = match host.resolve(options.connect_timeout).await {
                Ok(servers) => servers,
                Err(error) => {
                    refusals.push((host.to_string(), error));
                    continue;
                }
            };
            for server in servers {
                match Self::connect_to(options, &server).await {
                    Err(error) if error.class() == ErrorClass::Retry => {
                        refusals.push((server.to_string(), error));
                    }
                    outcome => return outcome,
                }
            }
        }
        Err(SourceError::none_usable(refusals))
    }

    /// Connects to this server and no other.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses the login or is in recovery.
    pub async fn connect_to(options: &SourceOptions, server: &Server) -> Result<Self, SourceError> {
        let connection = login::open(options, server, Purpose::Sql).await?;
        let (client, connection) = tokio_postgres::Config::new()
            // Part of the startup message, which goes nowhere.
            .user(&options.user)
            .ssl_mode(tokio_postgres::config::SslMode::Disable)
            .connect_raw(LoggedIn::new(connection), NoTls)
            .await
            .map_err(|error| SourceError::from_client("connecting", server, error))?;
        Ok(Self {
            client,
            server: server.clone(),
            session: tokio::spawn(connection),
        })
    }

    /// Waits until the session is over; whether the server ended it by decision (SQLSTATE
    /// 57P01: a shutdown, or an administrator). To be asked once. Cancel-safe.
    pub async fn ended(&mut self) -> bool {
        match (&mut self.session).await {
            Ok(Err(error)) => error.code() == Some(&SqlState::ADMIN_SHUTDOWN),
            Ok(Ok(())) | Err(_) => false,
        }
    }

    /// The server this session is on.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Every table and partitioned table of the database that could be an outbox; the filters
    /// choose among them.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub async fn tables(&self) -> Result<Vec<CapturedTable>, SourceError> {
        let rows = self
            .query(
                "listing tables",
                "SELECT c.oid, n.nspname, c.relname,
                        c.relreplident = 'f' OR EXISTS (
                            SELECT FROM pg_catalog.pg_index i
                            WHERE i.indrelid = c.oid AND i.indisvalid
                              AND (c.relreplident = 'd' AND i.indisprimary
                                   OR c.relreplident = 'i' AND i.indisreplident))
                 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                 WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
                 ORDER BY n.nspname, c.relname",
                &[],
            )
            .await?;
        Ok(rows
            .iter()
            .map(|row| CapturedTable {
                id: RelationId(row.get(0)),
                name: TableName {
                    schema: row.get(1),
                    name: row.get(2),
                },
                usable_identity: row.get(3),
            })
            .collect())
    }

    /// Counts a table's rows, but not further than `limit`, which a huge table could take long.
    ///
    /// # Errors
    /// When the role may not read the table.
    pub async fn count_rows(&self, table: &CapturedTable, limit: i64) -> Result<i64, SourceError> {
        let sql = format!(
            "SELECT count(*) FROM (SELECT FROM {} LIMIT $1) AS counted",
            table.quoted()
        );
        Ok(self
            .query_one("counting the outbox table's rows", &sql, &[&limit])
            .await?
            .get(0))
    }

    /// Runs a statement that returns no rows.
    pub(super) async fn execute(&self, doing: &'static str, sql: &str) -> Result<(), SourceError> {
        self.client
            .batch_execute(sql)
            .await
            .map_err(|error| SourceError::from_client(doing, &self.server, error))
    }

    pub(super) async fn query(
        &self,
        doing: &'static str,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, SourceError> {
        self.client
            .query(sql, parameters)
            .await
            .map_err(|error| SourceError::from_client(doing, &self.server, error))
    }

    pub(super) async fn query_one(
        &self,
        doing: &'static str,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<tokio_postgres::Row, SourceError> {
        self.client
            .query_one(sql, parameters)
            .await
            .map_err(|error| SourceError::from_client(doing, &self.server, error))
    }
}
