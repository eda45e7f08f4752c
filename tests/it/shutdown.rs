//! How it ends: SIGTERM drains, a dead broker does not hold it for ever, a second signal leaves.

use std::time::{Duration, Instant};

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::proxy::{Fault, Framing, Proxy};
use crate::support::services::{OwnKafka, Services};
use crate::support::topic;

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_stop_leaves_nothing_unconfirmed_and_the_slot_free() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    for number in 0..100 {
        database.event(&format!("CLM-{number}"), "{}").await;
    }
    let end = database.wal_end().await;
    // Asked to stop before anybody knows whether the last events have arrived.
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
    eventually("the slot is free", async || {
        (database.slot("active").await? == "false").then_some(())
    })
    .await;

    let mut again = setup.start().await;
    eventually("everything is confirmed", async || {
        database.confirmed(&end).await.then_some(())
    })
    .await;
    assert_eq!(again.stop().await, 0);
    let records = topic::read_all(
        &database.services.kafka,
        &format!("{}.claim.events", database.name),
    );
    assert_eq!(records.len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_transaction_is_read_to_its_end_before_stopping() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let topic = format!("{}.bulk.events", database.name);
    let setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    database
        .execute(
            "INSERT INTO outbox SELECT gen_random_uuid(), 'bulk', 'k', 'Written', '{}' FROM generate_series(1, 200000)",
        )
        .await;
    let some = async || (topic::count(&database.services.kafka, &topic) > 0).then_some(());
    eventually("the first of its events arrive", some).await;
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
    let again = setup.start().await;
    database.all_confirmed().await;
    drop(again);
    assert_eq!(
        topic::count(&database.services.kafka, &topic),
        200_000,
        "nothing is sent twice"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_broker_holds_the_end_only_for_the_time_set() {
    let kafka = OwnKafka::start_to_halt();
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    let mut setup = Setup::of(&database);
    setup.set("outboxd.shutdown.timeout.ms", "500");
    setup.set("status.update.interval.ms", "50");
    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    kafka.halt();
    let pending = database.event("CLM-2", "{}").await;
    database.all_read().await;
    let asked = Instant::now();
    assert_eq!(outboxd.stop().await, 0);
    println!(
        "SIGTERM with a dead broker and a limit of 500 ms: ended after {:?}",
        asked.elapsed()
    );
    assert!(
        outboxd.log().contains("will be sent again"),
        "{}",
        outboxd.log()
    );
    kafka.go_on();

    let _again = setup.start().await;
    database.all_confirmed().await;
    let records = topic::read_all(&kafka.address(), &format!("{}.claim.events", database.name));
    assert!(
        records
            .iter()
            .any(|record| record.id() == pending.to_string())
    );
}

/// The server cannot be told anything any more, nor can it answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_to_postgresql_that_leads_nowhere_holds_the_end_only_for_the_time_set() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let target = format!("127.0.0.1:{}", database.services.pg_port);
    let proxy = Proxy::to(&target, Framing::Postgres).await;
    let mut setup = Setup::of(&database);
    setup.database_behind(&proxy);
    setup.set("outboxd.shutdown.timeout.ms", "500");
    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    proxy.set(Fault::HalfOpen);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
    proxy.set(Fault::None);

    let _again = setup.start().await;
    database.event("CLM-2", "{}").await;
    database.all_confirmed().await;
    let topic = format!("{}.claim.events", database.name);
    assert_eq!(topic::count(&database.services.kafka, &topic), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_leaves_at_once() {
    let kafka = OwnKafka::start_to_halt();
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    let mut setup = Setup::of(&database);
    setup.set("status.update.interval.ms", "50");
    setup.set(
        "outboxd.shutdown.timeout.ms",
        &Duration::from_secs(3600).as_millis().to_string(),
    );
    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    kafka.halt();
    database.event("CLM-2", "{}").await;
    database.all_read().await;
    outboxd.signal("TERM");
    outboxd.says("Asked to stop").await;
    outboxd.signal("TERM");
    assert_eq!(outboxd.exit_code().await, 1);
    kafka.go_on();
}
