//! A database, slot and publication of a test's own.

use std::time::Instant;

use tokio_postgres::{Client, NoTls};

use super::services::Services;
use super::{PATIENCE, eventually, pause};

/// The exercise's outbox table, as users create it.
pub const OUTBOX: &str = include_str!("../../sql/outbox.sql");

/// A fresh database with an outbox; it and its slot go away with the value.
pub struct TestDatabase {
    pub services: Services,
    /// Names the database, the slot and the publication, and begins the topics' names.
    pub name: String,
    pub sql: Client,
}

impl TestDatabase {
    /// With the exercise's outbox table.
    pub async fn with_outbox(services: Services) -> Self {
        let database = Self::empty(services).await;
        database.execute(OUTBOX).await;
        database
    }

    pub async fn empty(services: Services) -> Self {
        let name = format!("t_{}", uuid::Uuid::new_v4().simple());
        connect(services.pg_port, "postgres")
            .await
            .batch_execute(&format!("CREATE DATABASE {name}"))
            .await
            .expect("create the database");
        let sql = connect(services.pg_port, &name).await;
        Self {
            services,
            name,
            sql,
        }
    }

    /// A new session after the server was restarted.
    pub async fn reconnect(&mut self) {
        self.sql = connect_again(self.services.pg_port, &self.name).await;
    }

    /// Another session.
    pub async fn session(&self) -> Client {
        connect(self.services.pg_port, &self.name).await
    }

    pub async fn execute(&self, sql: &str) {
        self.sql
            .batch_execute(sql)
            .await
            .unwrap_or_else(|error| panic!("{error:?}: {sql}"));
    }

    /// The first column of the only row, as text.
    pub async fn ask(&self, sql: &str) -> Option<String> {
        let row = self
            .sql
            .query_one(sql, &[])
            .await
            .unwrap_or_else(|error| panic!("{error:?}: {sql}"));
        row.get(0)
    }

    /// A column of our slot in `pg_replication_slots`, as text.
    pub async fn slot(&self, column: &str) -> Option<String> {
        self.ask(&format!(
            "SELECT (SELECT {column}::text FROM pg_replication_slots WHERE slot_name = '{}')",
            self.name
        ))
        .await
    }

    /// Whether the slot's confirmed position has reached `lsn`.
    pub async fn confirmed(&self, lsn: &str) -> bool {
        let sql = format!(
            "SELECT coalesce((SELECT confirmed_flush_lsn >= '{lsn}'::pg_lsn FROM pg_replication_slots WHERE slot_name = '{}'), false)::text",
            self.name
        );
        self.ask(&sql).await.as_deref() == Some("true")
    }

    /// The end of the log now.
    pub async fn wal_end(&self) -> String {
        self.ask("SELECT pg_current_wal_insert_lsn()::text")
            .await
            .unwrap()
    }

    /// Waits until everything written so far is confirmed.
    pub async fn all_confirmed(&self) {
        let end = self.wal_end().await;
        eventually("the slot confirms everything", async || {
            self.confirmed(&end).await.then_some(())
        })
        .await;
    }

    /// Waits until outboxd has read everything written so far, whatever became of it: the
    /// server has sent it, and outboxd has answered twice since then.
    pub async fn all_read(&self) {
        let end = self.wal_end().await;
        let answered = async || {
            let sql = format!(
                "SELECT max(reply_time)::text FROM pg_stat_replication JOIN pg_replication_slots ON pid = active_pid
                 WHERE slot_name = '{}' AND sent_lsn >= '{end}'::pg_lsn",
                self.name
            );
            self.ask(&sql).await
        };
        let mut last = eventually("the server sends everything", answered).await;
        for _ in 0..2 {
            last = eventually("outboxd answers", async || {
                answered().await.filter(|time| *time != last)
            })
            .await;
        }
    }

    /// One event in a transaction of its own.
    pub async fn event(&self, aggregate_id: &str, payload: &str) -> uuid::Uuid {
        let id = uuid::Uuid::new_v4();
        self.execute(&format!(
            "INSERT INTO outbox (id, aggregate_type, aggregate_id, type, payload)
             VALUES ('{id}', 'claim', '{aggregate_id}', 'ClaimSubmitted', '{payload}')"
        ))
        .await;
        id
    }
}

pub async fn connect(port: u16, database: &str) -> Client {
    try_connect(port, database)
        .await
        .expect("connect to the test server")
}

/// Tries until the server lets us in.
pub async fn connect_again(port: u16, database: &str) -> Client {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match try_connect(port, database).await {
            Ok(client) => return client,
            Err(error) => assert!(
                Instant::now() < deadline,
                "the server lets nobody in: {error:?}"
            ),
        }
        pause().await;
    }
}

pub async fn try_connect(port: u16, database: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::Config::new()
        .host("localhost")
        .port(port)
        .user("postgres")
        .password("postgres")
        .dbname(database)
        .connect(NoTls)
        .await?;
    tokio::spawn(connection);
    Ok(client)
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (port, name) = (self.services.pg_port, self.name.clone());
        // A slot left behind would make the server keep log for the rest of the run.
        let cleaning = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                // A server of the test's own may be gone already.
                let Ok(server) = try_connect(port, "postgres").await else {
                    return;
                };
                let drop_slot = format!(
                    "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{name}' AND active;
                     SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = '{name}' AND NOT active"
                );
                eventually("the slot can be dropped", async || {
                    server.batch_execute(&drop_slot).await.ok()?;
                    let left = server
                        .query_one("SELECT count(*) FROM pg_replication_slots WHERE database = $1", &[&name])
                        .await
                        .ok()?;
                    (left.get::<_, i64>(0) == 0).then_some(())
                })
                .await;
                let _ = server.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await;
            });
        });
        let _ = cleaning.join();
    }
}
