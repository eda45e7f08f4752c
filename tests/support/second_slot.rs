//! A second opinion on what was committed: PostgreSQL's own `test_decoding`. It shares no code
//! with outboxd, and not the tables' word either.

use std::collections::HashMap;

use tokio_postgres::types::PgLsn;

use super::database::TestDatabase;
use super::topic::Record;
use super::workload::Verdict;

/// A slot beside outboxd's. It has to be made before what it shall tell of, and goes away with
/// the database.
pub struct SecondSlot {
    name: String,
}

/// Whatever else the rows hold: what is needed of them stands at their beginning.
const ENOUGH: usize = 100;

impl SecondSlot {
    pub async fn create(database: &TestDatabase) -> Self {
        let name = format!("{}_2", database.name);
        database
            .execute(&format!(
                "SELECT pg_create_logical_replication_slot('{name}', 'test_decoding')"
            ))
            .await;
        Self { name }
    }

    /// All inserts into the outbox from the slot's beginning to now, and drops the slot.
    pub async fn read(self, database: &TestDatabase) -> Log {
        let rows = database
            .sql
            .query(
                "SELECT lsn, left(data, $2) FROM pg_logical_slot_get_changes($1, NULL, NULL)
                 WHERE data LIKE 'table public.outbox: INSERT:%' OR data LIKE 'COMMIT%'",
                &[&self.name, &i32::try_from(ENOUGH).unwrap()],
            )
            .await
            .expect("the second slot can be read");
        database
            .execute(&format!("SELECT pg_drop_replication_slot('{}')", self.name))
            .await;
        Log::of(rows.iter().map(|row| (row.get(0), row.get(1))))
    }

    /// Where the commit of this event's transaction ends: the position that says it is done.
    pub async fn commit_of(&self, database: &TestDatabase, event: &str) -> String {
        let sql = format!(
            "WITH log AS MATERIALIZED (SELECT * FROM pg_logical_slot_peek_changes('{}', NULL, NULL))
             SELECT lsn::text FROM log
             WHERE data LIKE 'COMMIT%' AND xid::text = (SELECT xid::text FROM log WHERE data LIKE '%{event}%')",
            self.name
        );
        database.ask(&sql).await.expect("the event is in the log")
    }
}

/// The transactions with events that the second slot tells of, in the order of their commits.
#[derive(Debug, Default)]
pub struct Log {
    pub transactions: Vec<Committed>,
}

#[derive(Debug, Default)]
pub struct Committed {
    /// Where the commit ends: the position that says the transaction is done.
    pub end: u64,
    /// The ids of its events, in the order of the statements.
    pub events: Vec<String>,
}

impl Log {
    /// From the slot's rows, each with its position.
    pub fn of<'a>(rows: impl Iterator<Item = (PgLsn, &'a str)>) -> Self {
        let mut log = Self::default();
        let mut open = Committed::default();
        for (position, data) in rows {
            if let Some(row) = data.strip_prefix("table public.outbox: INSERT: id[uuid]:'") {
                let (id, _) = row.split_once('\'').expect("a quoted id");
                open.events.push(id.to_owned());
            } else if data.starts_with("COMMIT") && !open.events.is_empty() {
                open.end = position.into();
                log.transactions.push(std::mem::take(&mut open));
            }
        }
        log
    }

    /// The ids of all events, in the order of commits and statements.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        let transactions = self.transactions.iter();
        transactions.flat_map(|transaction| transaction.events.iter().map(String::as_str))
    }

    /// Compares the log with a topic, where the first copies in each partition have to stand in
    /// the log's order: so each key's do.
    pub fn judge(&self, records: &[Record]) -> Verdict {
        let places: HashMap<&str, u64> = self.events().zip(1..).collect();
        Verdict::of(places.len(), records, |record| {
            let number = places.get(record.id().as_str())?;
            Some((record.partition.to_string(), *number))
        })
    }

    /// The middle one of the transactions' sizes, and the largest.
    pub fn median_and_largest(&self) -> (usize, usize) {
        let sizes = self.transactions.iter();
        let mut sizes: Vec<usize> = sizes.map(|committed| committed.events.len()).collect();
        sizes.sort_unstable();
        (sizes[sizes.len() / 2], sizes[sizes.len() - 1])
    }
}
