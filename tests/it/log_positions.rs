//! Rules R1 and R2: what is confirmed, and when.

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::second_slot::SecondSlot;
use crate::support::services::{OwnKafka, Services};
use crate::support::topic;
use crate::support::workload::{Verdict, Workload};

/// Writes about this many MB to a table that nobody captures.
async fn write_elsewhere(database: &TestDatabase, megabytes: u32) {
    database
        .execute("CREATE TABLE IF NOT EXISTS elsewhere (content text)")
        .await;
    for _ in 0..megabytes {
        // Hexadecimal digests do not compress away.
        database
            .execute(
                "INSERT INTO elsewhere SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 32000) AS i GROUP BY i % 500",
            )
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unacknowledged_event_is_never_confirmed_whatever_keepalives_say() {
    let kafka = OwnKafka::start_to_halt();
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    let setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    let second = SecondSlot::create(&database).await;
    let first = database.event("CLM-1", "{}").await;
    database.all_confirmed().await;

    kafka.halt();
    let pending = database.event("CLM-2", "{}").await;
    let commit = second.commit_of(&database, &pending.to_string()).await;
    let mut samples = 0;
    for _ in 0..50 {
        write_elsewhere(&database, 1).await;
        assert!(!database.confirmed(&commit).await, "sample {samples}");
        samples += 1;
    }
    outboxd.kill();
    let confirmed = database.slot("confirmed_flush_lsn").await;
    println!(
        "50 MB written elsewhere, {samples} samples: confirmed stays at {confirmed:?}, before the commit {commit}"
    );
    kafka.go_on();

    let _outboxd = setup.start().await;
    database.all_confirmed().await;
    let records = topic::read_all(&kafka.address(), &format!("{}.claim.events", database.name));
    let ids: Vec<String> = records.iter().map(|record| record.id()).collect();
    assert!(ids.contains(&first.to_string()));
    assert!(ids.contains(&pending.to_string()), "{ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_without_events_are_confirmed_in_their_turn() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let _outboxd = Setup::of(&database).start().await;
    database.event("CLM-1", "{}").await;
    // Updates and deletes are published or not; neither yields an event nor holds anything up.
    database
        .execute("UPDATE outbox SET type = 'Changed'; DELETE FROM outbox")
        .await;
    database.all_confirmed().await;
    let records = topic::read_all(
        &database.services.kafka,
        &format!("{}.claim.events", database.name),
    );
    assert_eq!(records.len(), 1);
}

/// BR-055: reports and the stream share a connection, and neither holds the other up.
#[tokio::test(flavor = "multi_thread")]
async fn reports_every_few_milliseconds_are_in_nobodys_way() {
    const EVENTS: usize = 20_000;
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("status.update.interval.ms", "10");
    let mut outboxd = setup.start().await;
    let load = Workload::start(&database, 4).await;
    eventually("the writers have written enough", async || {
        (load.committed() > EVENTS).then_some(())
    })
    .await;
    let (events, verdict) = load.judge(&database).await;
    println!("reports every 10 ms: {events} events, {verdict:?}");
    assert_eq!(verdict, Verdict::default());
    assert_eq!(outboxd.log().matches("Streaming ").count(), 1);
    assert!(
        outboxd.complaints().is_empty(),
        "{:?}",
        outboxd.complaints()
    );
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reported_position_never_goes_back() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let _outboxd = Setup::of(&database).start().await;
    let mut last = "0/0".to_owned();
    for round in 0..50 {
        database.event(&format!("CLM-{round}"), "{}").await;
        let advanced = format!(
            "SELECT CASE WHEN confirmed_flush_lsn >= '{last}'::pg_lsn THEN confirmed_flush_lsn::text END
             FROM pg_replication_slots WHERE slot_name = '{}'",
            database.name
        );
        last = database
            .ask(&advanced)
            .await
            .expect("a position at or beyond the last one");
    }
    eventually("the rest is confirmed", async || {
        let end = database.wal_end().await;
        database.confirmed(&end).await.then_some(())
    })
    .await;
}
