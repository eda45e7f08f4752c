//! Writers that know what they wrote: each key has a counter, taken under a row lock in the
//! event's own transaction and carried in its payload, so that the order of a key's events in
//! the log is the order of its numbers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::task::JoinHandle;
use tokio_postgres::Client;
use uuid::Uuid;

use super::database::TestDatabase;
use super::topic::Record;

const KEYS: usize = 24;

/// Transactions going on until [`Self::end`]: one to five rows, some with a savepoint rolled
/// back, some rolled back whole.
pub struct Workload {
    stop: Arc<AtomicBool>,
    committed: Arc<AtomicUsize>,
    writers: Vec<JoinHandle<Vec<Uuid>>>,
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
        let mut tasks = Vec::new();
        for seed in 0..writers {
            let session = database.session().await;
            tasks.push(tokio::spawn(write(
                session,
                seed,
                Arc::clone(&stop),
                Arc::clone(&committed),
            )));
        }
        Self {
            stop,
            committed,
            writers: tasks,
        }
    }

    /// How many events were committed so far.
    pub fn committed(&self) -> usize {
        self.committed.load(Ordering::Relaxed)
    }

    /// Ends the writers; the ids of all committed events.
    pub async fn end(self) -> HashSet<String> {
        self.stop.store(true, Ordering::Relaxed);
        let mut ids = HashSet::new();
        for writer in self.writers {
            ids.extend(
                writer
                    .await
                    .expect("the writer works")
                    .iter()
                    .map(Uuid::to_string),
            );
        }
        ids
    }
}

async fn write(
    mut session: Client,
    seed: u64,
    stop: Arc<AtomicBool>,
    committed: Arc<AtomicUsize>,
) -> Vec<Uuid> {
    let mut random = fastrand::Rng::with_seed(seed);
    let insert = session
        .prepare(
            "WITH next AS (UPDATE counters SET n = n + 1 WHERE key = $1 RETURNING n)
             INSERT INTO outbox (id, aggregate_type, aggregate_id, type, payload)
             SELECT $2::text::uuid, 'load', $1, 'Counted', jsonb_build_object('n', n) FROM next",
        )
        .await
        .unwrap();
    let mut ids = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let mut keys: Vec<usize> = (0..random.usize(1..=5))
            .map(|_| random.usize(..KEYS))
            .collect();
        // Locks are taken in one order, so that writers never wait for each other in a circle.
        keys.sort_unstable();
        let transaction = session.transaction().await.unwrap();
        let mut written = Vec::new();
        for key in &keys {
            let id = Uuid::from_u128(random.u128(..));
            transaction
                .execute(&insert, &[&format!("k{key}"), &id.to_string()])
                .await
                .unwrap();
            written.push(id);
        }
        if random.u8(..) < 16 {
            transaction.batch_execute("SAVEPOINT s").await.unwrap();
            let gone = Uuid::from_u128(random.u128(..));
            let last = format!("k{}", keys[keys.len() - 1]);
            transaction
                .execute(&insert, &[&last, &gone.to_string()])
                .await
                .unwrap();
            transaction.batch_execute("ROLLBACK TO s").await.unwrap();
        }
        if random.u8(..) < 16 {
            transaction.rollback().await.unwrap();
        } else {
            transaction.commit().await.unwrap();
            committed.fetch_add(written.len(), Ordering::Relaxed);
            ids.extend(written);
        }
    }
    ids
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
    pub fn of(committed: &HashSet<String>, records: &[Record]) -> Self {
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
