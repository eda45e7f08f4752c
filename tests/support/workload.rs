//! Writers that know what they wrote: each key has a counter, taken under a row lock in the
//! event's own transaction and carried in its payload, so that the order of a key's events in
//! the log is the order of its numbers.

pub mod rough;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::SinkExt as _;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage, Transaction};
use uuid::Uuid;

use super::database::{TestDatabase, connect_again};
use super::topic::{self, Record};

const KEYS: usize = 256;

/// Prepared once a session, so that the server's time goes into writing.
const STATEMENTS: &str = "
    PREPARE take (text) AS UPDATE counters SET n = n + 1 WHERE key = $1 RETURNING key, n;
    PREPARE event (text, uuid) AS
    WITH next AS (UPDATE counters SET n = n + 1 WHERE key = $1 RETURNING n)
    INSERT INTO outbox (id, aggregate_type, aggregate_id, type, payload)
    SELECT $2, 'load', $1, 'Counted', jsonb_build_object('n', n) FROM next;
    PREPARE filled (text, uuid, int) AS
    WITH next AS (UPDATE counters SET n = n + 1 WHERE key = $1 RETURNING n)
    INSERT INTO outbox (id, aggregate_type, aggregate_id, type, payload)
    SELECT $2, 'load', $1, 'Counted', jsonb_build_object('n', n, 'filling', repeat('f', $3)) FROM next";

type Outcome<T> = Result<T, tokio_postgres::Error>;

/// Transactions going on until [`Self::end`], as fast as the server takes them: 1 to 50 rows,
/// half of them at most 3, written by single statements or by COPY; some with a savepoint rolled
/// back, some rolled back whole. A writer whose session ends opens another one.
pub struct Workload {
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
    writers: Vec<JoinHandle<()>>,
}

/// As far as the writers were told.
#[derive(Default)]
struct Counts {
    transactions: AtomicUsize,
    events: AtomicUsize,
}

impl Workload {
    pub async fn start(database: &TestDatabase, writers: u64) -> Self {
        Self::start_seeded(database, writers, 0).await
    }

    /// The same seed makes the same transactions, as long as no session ends.
    pub async fn start_seeded(database: &TestDatabase, writers: u64, seed: u64) -> Self {
        Self::start_as(database, writers, seed, Manner::Plain).await
    }

    /// At a moderate rate, with everything else that stands in a real database's log: large
    /// events, logical messages, and changes of the table's shape.
    pub async fn start_rough(database: &TestDatabase, writers: u64, seed: u64) -> Self {
        Self::start_as(database, writers, seed, Manner::Rough).await
    }

    async fn start_as(database: &TestDatabase, writers: u64, seed: u64, manner: Manner) -> Self {
        database
            .execute(&format!(
                "CREATE TABLE counters (key text PRIMARY KEY, n bigint NOT NULL);
                 INSERT INTO counters SELECT 'k' || i, 0 FROM generate_series(0, {}) AS i",
                KEYS - 1
            ))
            .await;
        let stop = Arc::new(AtomicBool::new(false));
        let counts = Arc::new(Counts::default());
        let mut seeds = fastrand::Rng::with_seed(seed);
        let writers = (0..writers)
            .map(|_| {
                let writer = Writer {
                    port: database.services.pg_port,
                    database: database.name.clone(),
                    random: seeds.fork(),
                    manner,
                    counts: Arc::clone(&counts),
                };
                tokio::spawn(writer.write_until(Arc::clone(&stop)))
            })
            .collect();
        Self {
            stop,
            counts,
            writers,
        }
    }

    /// How many events were committed so far, as far as the writers were told.
    pub fn committed(&self) -> usize {
        self.counts.events.load(Ordering::Relaxed)
    }

    /// How many transactions with events were committed so far.
    pub fn transactions(&self) -> usize {
        self.counts.transactions.load(Ordering::Relaxed)
    }

    /// Ends the writers, waits until everything is delivered, and judges the topic: how many
    /// events were committed, and what became of them.
    pub async fn judge(self, database: &TestDatabase) -> (usize, Verdict) {
        let (written, records) = self.delivered(database).await;
        (written.len(), judge(&written, &records))
    }

    /// Ends the writers, waits until everything is delivered: the ids of all committed events,
    /// and what the topic holds.
    pub async fn delivered(self, database: &TestDatabase) -> (HashSet<String>, Vec<Record>) {
        let committed = self.end(database).await;
        database.all_confirmed().await;
        let topic = format!("{}.load.events", database.name);
        (committed, topic::read_all(&database.services.kafka, &topic))
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// As fast as the server takes it.
    Plain,
    /// See [`Workload::start_rough`].
    Rough,
}

/// The longest a writer rests between two transactions of a rough workload.
const LONGEST_REST: Duration = Duration::from_millis(30);

struct Writer {
    port: u16,
    database: String,
    random: fastrand::Rng,
    manner: Manner,
    counts: Arc<Counts>,
}

impl Writer {
    async fn write_until(mut self, stop: Arc<AtomicBool>) {
        while !stop.load(Ordering::Relaxed) {
            let mut session = connect_again(self.port, &self.database).await;
            if session.batch_execute(STATEMENTS).await.is_err() {
                continue;
            }
            while !stop.load(Ordering::Relaxed) {
                // A session that ended is replaced; what it was doing counts if it committed.
                if self.transaction(&mut session).await.is_err() && session.is_closed() {
                    break;
                }
                if self.manner == Manner::Rough {
                    tokio::time::sleep(LONGEST_REST.mul_f64(self.random.f64())).await;
                }
            }
        }
    }

    async fn transaction(&mut self, session: &mut Client) -> Outcome<()> {
        let random = &mut self.random;
        let mut keys: Vec<usize> = (0..rows(random)).map(|_| random.usize(..KEYS)).collect();
        // Locks are taken in one order, so that writers never wait for each other in a circle.
        keys.sort_unstable();
        let transaction = session.transaction().await?;
        if self.manner == Manner::Rough {
            rough::before(&transaction, random).await?;
        }
        if random.u8(..) < 32 {
            copy(&transaction, &keys, random).await?;
        } else {
            // In two steps, so that other writers' rows come in between.
            let (first, second) = keys.split_at(keys.len() / 2);
            if !first.is_empty() {
                insert(&transaction, first, self.manner, random).await?;
            }
            insert(&transaction, second, self.manner, random).await?;
        }
        if random.u8(..) < 16 {
            transaction.batch_execute("SAVEPOINT s").await?;
            insert(&transaction, &keys[keys.len() - 1..], self.manner, random).await?;
            transaction.batch_execute("ROLLBACK TO s").await?;
        }
        if random.u8(..) < 16 {
            transaction.rollback().await?;
        } else {
            transaction.commit().await?;
            self.counts.transactions.fetch_add(1, Ordering::Relaxed);
            self.counts.events.fetch_add(keys.len(), Ordering::Relaxed);
        }
        Ok(())
    }
}

/// 1 to 50, and in half of all cases at most 3.
fn rows(random: &mut fastrand::Rng) -> usize {
    if random.bool() {
        random.usize(1..=3)
    } else {
        // From 3 up, the larger the less often.
        (3.0 * 17_f64.powf(random.f64())) as usize
    }
    .min(50)
}

fn id(random: &mut fastrand::Rng) -> Uuid {
    Uuid::from_u128(random.u128(..))
}

async fn insert(
    transaction: &Transaction<'_>,
    keys: &[usize],
    manner: Manner,
    random: &mut fastrand::Rng,
) -> Outcome<()> {
    let mut sql = String::new();
    for key in keys {
        let filling = match manner {
            Manner::Plain => 0,
            Manner::Rough => rough::filling(random),
        };
        rough::add_event(&mut sql, *key, id(random), filling);
    }
    transaction.batch_execute(&sql).await
}

/// The same by COPY: first all numbers under their locks, then all rows at once.
async fn copy(
    transaction: &Transaction<'_>,
    keys: &[usize],
    random: &mut fastrand::Rng,
) -> Outcome<()> {
    let mut numbers = String::new();
    for key in keys {
        let _ = write!(numbers, "EXECUTE take('k{key}');");
    }
    let mut rows = String::new();
    for message in transaction.simple_query(&numbers).await? {
        if let SimpleQueryMessage::Row(row) = message {
            let (key, number) = (row.get(0).unwrap(), row.get(1).unwrap());
            let id = id(random);
            let _ = writeln!(rows, "{id}\tload\t{key}\tCounted\t{{\"n\": {number}}}");
        }
    }
    let sink = transaction
        .copy_in("COPY outbox (id, aggregate_type, aggregate_id, type, payload) FROM STDIN")
        .await?;
    let mut sink = std::pin::pin!(sink);
    sink.send(Bytes::from(rows)).await?;
    sink.finish().await?;
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
    /// Judges a topic of one partition, read in order. `committed` is the number of committed
    /// events, and `place` an event's sequence and its number there, from 1 on; none of one that
    /// was not committed.
    pub fn of(
        committed: usize,
        records: &[Record],
        place: impl Fn(&Record) -> Option<(String, u64)>,
    ) -> Self {
        let mut verdict = Self::default();
        let mut seen = HashSet::new();
        let mut last: HashMap<String, u64> = HashMap::new();
        for record in records {
            if !seen.insert(record.id()) {
                verdict.duplicates += 1;
                continue;
            }
            let Some((sequence, number)) = place(record) else {
                verdict.invented += 1;
                continue;
            };
            let last = last.entry(sequence).or_default();
            if number <= *last {
                verdict.out_of_order += 1;
            }
            *last = number.max(*last);
        }
        verdict.missing = committed + verdict.invented - seen.len();
        verdict
    }
}

/// Compares the topic with the ids that were committed, and with the numbers its events carry.
pub fn judge(committed: &HashSet<String>, records: &[Record]) -> Verdict {
    Verdict::of(committed.len(), records, |record| {
        if !committed.contains(&record.id()) {
            return None;
        }
        let value: serde_json::Value = serde_json::from_str(&record.value_text()).expect("JSON");
        let number = value["n"].as_u64().expect("a number");
        Some((record.key_text(), number))
    })
}
