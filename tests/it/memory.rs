//! Rule R5: memory is bounded, however large a transaction and however slow the broker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::services::{OwnKafka, Services};
use crate::support::topic;

const ROWS: i64 = 1_000_000;
const LIMIT_KIB: u64 = 64 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_a_million_rows_needs_no_more_than_64_mib_also_with_a_slow_broker() {
    let kafka = OwnKafka::start();
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    let topic = format!("{}.bulk.events", database.name);
    let setup = Setup::of(&database);
    let outboxd = setup.start().await;
    database
        .execute(&format!(
            "INSERT INTO outbox (id, aggregate_type, aggregate_id, type, payload)
             SELECT gen_random_uuid(), 'bulk', 'k' || i % 1000, 'Written',
                    jsonb_build_object('n', i, 'text', repeat('x', 300))
             FROM generate_series(1, {ROWS}) AS i"
        ))
        .await;
    let half = async || (topic::count(&kafka.address(), &topic) > ROWS / 2).then_some(());
    eventually("half of the rows arrive", half).await;

    // The broker answers only a fifth of the time from here on.
    let slow = Arc::new(AtomicBool::new(true));
    let slowing = {
        let slow = Arc::clone(&slow);
        let halting = Halting(kafka);
        std::thread::spawn(move || {
            while slow.load(Ordering::Relaxed) {
                halting.0.halt();
                std::thread::park_timeout(std::time::Duration::from_millis(200));
                halting.0.go_on();
                std::thread::park_timeout(std::time::Duration::from_millis(50));
            }
            halting
        })
    };
    database.all_confirmed().await;
    slow.store(false, Ordering::Relaxed);
    let kafka = slowing.join().expect("the broker goes on");

    let peak = outboxd.peak_memory_kib();
    println!("one transaction of {ROWS} rows, broker slowed in the second half: VmHWM {peak} KiB");
    assert_eq!(topic::count(&kafka.0.address(), &topic), ROWS);
    assert!(peak < LIMIT_KIB, "VmHWM {peak} KiB");
}

/// Never leaves the broker halted.
struct Halting(OwnKafka);

impl Drop for Halting {
    fn drop(&mut self) {
        self.0.go_on();
    }
}
