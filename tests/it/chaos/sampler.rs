//! Looks all the time whether the server was told a position that Kafka does not bear out.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use tokio_postgres::types::PgLsn;

use crate::support::database::{TestDatabase, connect_again};
use crate::support::second_slot::Log;
use crate::support::topic::Record;

const PAUSE: Duration = Duration::from_millis(10);

/// At some moment the server had this confirmed position, and a moment later the partitions held
/// this much that is acknowledged.
#[derive(Debug, Clone)]
pub struct Sample {
    pub confirmed: u64,
    /// The end offset of each partition, in their order, as far as it could be had.
    pub ends: Vec<Option<i64>>,
}

pub struct Sampler {
    stop: Arc<AtomicBool>,
    sampling: JoinHandle<Vec<Sample>>,
}

impl Sampler {
    pub fn start(database: &TestDatabase, topic: &str, partitions: i32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let consumer = ClientConfig::new()
            .set("bootstrap.servers", &database.services.kafka)
            .create()
            .expect("a client");
        let work = Work {
            port: database.services.pg_port,
            name: database.name.clone(),
            topic: topic.to_owned(),
            partitions,
            consumer,
            stop: Arc::clone(&stop),
        };
        let sampling = tokio::spawn(work.run());
        Self { stop, sampling }
    }

    pub async fn end(self) -> Vec<Sample> {
        self.stop.store(true, Ordering::Relaxed);
        self.sampling.await.expect("the sampler works")
    }
}

struct Work {
    port: u16,
    name: String,
    topic: String,
    partitions: i32,
    consumer: BaseConsumer,
    stop: Arc<AtomicBool>,
}

impl Work {
    async fn run(self) -> Vec<Sample> {
        let mut samples: Vec<Sample> = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let session = connect_again(self.port, &self.name).await;
            // Until the session ends, as with a server that is restarted.
            while let Some(confirmed) = self.confirmed(&session).await
                && !self.stop.load(Ordering::Relaxed)
            {
                let is_new = samples
                    .last()
                    .is_none_or(|last| last.confirmed != confirmed);
                if is_new {
                    let ends = tokio::task::block_in_place(|| self.ends());
                    samples.push(Sample { confirmed, ends });
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        samples
    }

    async fn confirmed(&self, session: &Client) -> Option<u64> {
        let sql = "SELECT coalesce(confirmed_flush_lsn, '0/0') FROM pg_replication_slots WHERE slot_name = $1";
        let row = session.query_one(sql, &[&self.name]).await.ok()?;
        Some(row.get::<_, PgLsn>(0).into())
    }

    /// All at once, since each takes the client its time. None where no leader answers: a later
    /// end would prove less.
    fn ends(&self) -> Vec<Option<i64>> {
        let end = |partition| {
            let waits = Duration::from_millis(500);
            let marks = self
                .consumer
                .fetch_watermarks(&self.topic, partition, waits);
            Some(marks.ok()?.1)
        };
        std::thread::scope(|scope| {
            let asking: Vec<_> = (0..self.partitions)
                .map(|partition| scope.spawn(move || end(partition)))
                .collect();
            asking
                .into_iter()
                .map(|one| one.join().expect("an answer or none"))
                .collect()
        })
    }
}

/// In how many samples a position was confirmed although an event before it was not in Kafka yet.
pub fn confirmed_too_early(samples: &[Sample], log: &Log, records: &[Record]) -> usize {
    let mut first_copies: HashMap<String, (usize, i64)> = HashMap::new();
    for record in records {
        let partition = usize::try_from(record.partition).expect("a partition");
        first_copies
            .entry(record.id())
            .or_insert((partition, record.offset));
    }
    // After each transaction: how much every partition holds at least, if nothing was confirmed
    // too early.
    let mut needed = vec![0; samples.first().map_or(0, |sample| sample.ends.len())];
    let mut after = Vec::with_capacity(log.transactions.len());
    for transaction in &log.transactions {
        for event in &transaction.events {
            match first_copies.get(event) {
                Some((partition, offset)) => {
                    needed[*partition] = needed[*partition].max(offset + 1);
                }
                None => needed.fill(i64::MAX),
            }
        }
        after.push(needed.clone());
    }
    let is_early = |sample: &&Sample| {
        let transactions = &log.transactions;
        let confirmed = transactions.partition_point(|one| one.end <= sample.confirmed);
        let needed = confirmed.checked_sub(1).map(|last| &after[last]);
        needed.is_some_and(|needed| {
            let mut partitions = needed.iter().zip(&sample.ends);
            partitions.any(|(need, end)| end.is_some_and(|end| *need > end))
        })
    };
    samples.iter().filter(is_early).count()
}
