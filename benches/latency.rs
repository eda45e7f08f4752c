//! Time from commit to consumer at 100 transactions a second: `make latency`.
//!
//! A writer commits single events at fixed times, whatever the answers take; a consumer notes
//! when each arrives. Both clocks are this process's.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and prints what it measured"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use support::database::TestDatabase;
use support::outboxd::Setup;
use support::services::Services;
use support::topic::Reader;

const RATE: u32 = 100;
const SECONDS: u32 = 20;
/// The first second meets cold caches on every side and is left out.
const WARM_UP: u32 = RATE;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let outboxd = Setup::of(&database).start().await;
    let topic = format!("{}.claim.events", database.name);
    let first = database.event("warm-up", "{}").await;
    database.all_confirmed().await;

    let arrivals = Arc::new(Mutex::new(HashMap::new()));
    let done = Arc::new(AtomicBool::new(false));
    let reading = {
        let (arrivals, done) = (Arc::clone(&arrivals), Arc::clone(&done));
        let mut reader = Reader::open(&database.services.kafka, &topic);
        std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                if let Some(record) = reader.next(Duration::from_millis(100)) {
                    arrivals.lock().unwrap().insert(record.id(), Instant::now());
                }
            }
        })
    };
    support::eventually("the consumer reads", async || {
        arrivals
            .lock()
            .unwrap()
            .contains_key(&first.to_string())
            .then_some(())
    })
    .await;

    let mut ticks = tokio::time::interval(Duration::from_secs(1) / RATE);
    let mut committed = Vec::new();
    for number in 0..RATE * SECONDS {
        ticks.tick().await;
        let id = database
            .event(&format!("CLM-{}", number % 50), r#"{"amount": 1250.50}"#)
            .await;
        committed.push((id.to_string(), Instant::now()));
    }
    database.all_confirmed().await;
    support::eventually("everything is consumed", async || {
        (arrivals.lock().unwrap().len() == committed.len() + 1).then_some(())
    })
    .await;
    done.store(true, Ordering::Relaxed);
    reading.join().expect("the consumer works");
    drop(outboxd);

    let arrivals = arrivals.lock().unwrap();
    let mut latencies: Vec<Duration> = committed
        .iter()
        .skip(WARM_UP as usize)
        // An event can be consumed before the commit's answer reaches the writer.
        .map(|(id, at)| arrivals[id].saturating_duration_since(*at))
        .collect();
    latencies.sort_unstable();
    let percentile =
        |share: usize| latencies[(latencies.len() - 1) * share / 100].as_secs_f64() * 1000.0;
    println!(
        "commit to consumer at {RATE} transactions a second, {} events: median {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
        latencies.len(),
        percentile(50),
        percentile(99),
        percentile(100)
    );
}
