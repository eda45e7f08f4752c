//! Writers that know what they wrote: each key has a counter, taken under a row lock in the
//! event's own transaction and carried in its payload, so that the order of a key's events in
//! the log is the order of its numbers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::task::JoinHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use super::database::{TestDatabase, connect_again};
use super::topic::{self, Record};

const KEYS: usize = 24;

/// Transactions going on until [`Self::end`]: one to five rows, some with a savepoint rolled
/// back, some rolled back whole. A writer whose session ends opens another one.
pub struct Workload {
    stop: Arc<AtomicBool>,
    committed: Arc<AtomicUsize>,
    writers: Vec<JoinHandle<()>>,
}

impl Workload {
    pub async fn start(database: &TestDatabase, writers: u64) -> Self {
        database
            .execute(&format!(
                "CREATE TABLE counters (key text PRIMARY KEY, n bigint NOT NULL);
                 INSERT INTO counters SELECT 'k' || i, 0 FROM generate_series(0, {}) AS i",
                KEYS - 1
            ))
            .await;
        let stop = Arc::new(AtomicBool::new(false));
        let committed = Arc::new(AtomicUsize::new(0));
        let writers = (0..writers)
            .map(|seed| {
                let writer = Writer {
                    port: database.services.pg_port,
                    database: database.name.clone(),
                    random: fastrand::Rng::with_seed(seed),
                    committed: Arc::clone(&committed),
                };
                tokio::spawn(writer.write_until(Arc::clone(&stop)))
            })
            .collect();
        Self {
            stop,
            committed,
            writers,
        }
    }

    /// How many events were committed so far, as far as the writers were told.
    pub fn committed(&self) -> usize {
        self.committed.load(Ordering::Relaxed)
    }

    /// Ends the writers, waits until everything is delivered, and judges the topic: how many
    /// events were committed, and what became of them.
    pub async fn judge(self, database: &TestDatabase) -> (usize, Verdict) {
        let committed = self.end(database).await;
        database.all_confirmed().await;
        let topic = format!("{}.load.events", database.name);
        let records = topic::read_all(&database.services.kafka, &topic);
        (committed.len(), Verdict::of(&committed, &records))
    }

    /// Ends the writers; the ids of all committed events. The table says which these are, since
    /// a writer whose session ended does not know of its last transaction.
    async fn end(self, database: &TestDatabase) -> HashSet<String> {
        self.stop.store(true, Ordering::Relaxed);
        for writer in self.writers {
            writer.await.expect("the writer works");
        }
        let session = database.session().await;
        let rows = session
            .query(
                "SELECT id::text FROM outbox WHERE aggregate_type = 'load'",
                &[],
            )
            .await
            .expect("the table can be read");
        rows.iter().map(|row| row.get(0)).collect()
    }
}

struct Writer {
    port: u16,
    database: String,
    random: fastrand::Rng,
    committed: Arc<AtomicUsize>,
}

impl Writer {
    async fn write_until(mut self, stop: Arc<AtomicBool>) {
        while !stop.load(Ordering::Relaxed) {
            let mut session = connect_again(self.port, &self.database).await;
            while !stop.load(Ordering::Relaxed) {
                // A session that ended is replaced; what it was doing counts if it committed.
                if self.transaction(&mut session).await.is_err() && session.is_closed() {
                    break;
                }
            }
        }
    }

    async fn transaction(&mut self, session: &mut Client) -> Result<(), tokio_postgres::Error> {
        let random = &mut self.random;
        let mut keys: Vec<usize> = (0..random.usize(1..=5))
            .map(|_| random.usize(..KEYS))
            .collect();
        // Locks are taken in one order, so that writers never wait for each other in a circle.
        keys.sort_unstable();
        let transaction = session.transaction().await?;
        for key in &keys {
            insert(&transaction, *key, random).await?;
        }
        if random.u8(..) < 16 {
            transaction.batch_execute("SAVEPOINT s").await?;
            insert(&transaction, keys[keys.len() - 1], random).await?;
            transaction.batch_execute("ROLLBACK TO s").await?;
        }
        if random.u8(..) < 16 {
            transaction.rollback().await?;
        } else {
            transaction.commit().await?;
            self.committed.fetch_add(keys.len(), Ordering::Relaxed);
        }
        Ok(())
    }
}

async fn insert(
    transaction: &Transaction<'_>,
    key: usize,
    random: &mut fastrand::Rng,
) -> Result<(), tokio_postgres::Error> {
    let id = Uuid::from_u128(random.u128(..)).to_string();
    let sql = "WITH next AS (UPDATE counters SET n = n + 1 WHERE key = $1 RETURNING n)
               INSERT INTO outbox (id, aggregate_type, aggregate_id, type, payload)
               SELECT $2::text::uuid, 'load', $1, 'Counted', jsonb_build_object('n', n) FROM next";
    let parameters: [(&(dyn ToSql + Sync), Type); 2] =
        [(&format!("k{key}"), Type::TEXT), (&id, Type::TEXT)];
    transaction.query_typed(sql, &parameters).await?;
    Ok(())
}

/// What a topic shows of a workload.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Committed, but not in the topic.
    pub missing: usize,
    /// In the topic, but never committed.
    pub invented: usize,
    /// Copies beyond the first.
    pub duplicates: usize,
    /// Events whose first copy comes after a later event of the same key.
    pub out_of_order: usize,
}

impl Verdict {
    /// Compares what was committed with a topic of one partition, read in order.
    fn of(committed: &HashSet<String>, records: &[Record]) -> Self {
        let mut verdict = Self::default();
        let mut seen = HashSet::new();
        let mut last: HashMap<String, u64> = HashMap::new();
        for record in records {
            let id = record.id();
            if !seen.insert(id.clone()) {
                verdict.duplicates += 1;
                continue;
            }
            if !committed.contains(&id) {
                verdict.invented += 1;
                continue;
            }
            let value: serde_json::Value =
                serde_json::from_str(&record.value_text()).expect("JSON");
            let number = value["n"].as_u64().expect("a number");
            let last = last.entry(record.key_text()).or_default();
            if number <= *last {
                verdict.out_of_order += 1;
            }
            *last = number.max(*last);
        }
        verdict.missing = committed.iter().filter(|id| !seen.contains(*id)).count();
        verdict
    }
}
