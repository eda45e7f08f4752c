//! A broker that is away for longer than `wal_sender_timeout` costs neither the connection to
//! PostgreSQL nor an event (rules R1 and R5).

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::second_slot::SecondSlot;
use crate::support::services::{OwnKafka, Services};
use crate::support::topic;

const WAL_SENDER_TIMEOUT: Duration = Duration::from_secs(3);

/// `queue` events may be in flight; when they are, the socket is not read any more.
async fn broker_halted_for_long(queue: &str) {
    let kafka = OwnKafka::start_to_halt();
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    database
        .execute(&format!(
            "ALTER DATABASE {} SET wal_sender_timeout = '{} s'",
            database.name,
            WAL_SENDER_TIMEOUT.as_secs()
        ))
        .await;
    let mut setup = Setup::of(&database);
    setup.set("max.queue.size", queue);
    let mut outboxd = setup.start().await;
    let second = SecondSlot::create(&database).await;
    let mut written = vec![database.event("CLM-0", "{}").await.to_string()];
    database.all_confirmed().await;
    let walsender = database.slot("active_pid").await;
    assert!(walsender.is_some());

    kafka.halt();
    let pending = database.event("CLM-1", "{}").await.to_string();
    let commit = second.commit_of(&database, &pending).await;
    written.push(pending);
    // Larger than what the kernel buffers between the server and outboxd, all in all.
    let payload = format!(r#"{{"filling": "{}"}}"#, "x".repeat(20_000));
    let begun = Instant::now();
    let mut samples = 0;
    let mut confirmed = None;
    // The time is what this test is about.
    while begun.elapsed() < 3 * WAL_SENDER_TIMEOUT {
        let number = written.len();
        written.push(
            database
                .event(&format!("CLM-{number}"), &payload)
                .await
                .to_string(),
        );
        confirmed = database.slot("confirmed_flush_lsn").await;
        assert!(
            !database.confirmed(&commit).await,
            "confirmed {confirmed:?}, and the commit at {commit} is not acknowledged"
        );
        assert_eq!(database.slot("active_pid").await, walsender);
        samples += 1;
    }
    let gone = begun.elapsed();
    kafka.go_on();
    let back = Instant::now();
    database.all_confirmed().await;
    let back = back.elapsed();

    assert_eq!(database.slot("active_pid").await, walsender);
    let records = topic::read_all(&kafka.address(), &format!("{}.claim.events", database.name));
    println!(
        "broker halted for {gone:.1?} with wal_sender_timeout {WAL_SENDER_TIMEOUT:?} and max.queue.size {queue}: \
         {samples} samples, confirmed {confirmed:?} before the pending commit {commit}; {} events written, {} delivered {back:.1?} after it was back",
        written.len(),
        records.len()
    );
    let delivered: Vec<String> = records.iter().map(|record| record.id()).collect();
    assert!(delivered == written, "each once and in order");
    assert_eq!(outboxd.log().matches("Streaming ").count(), 1);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halted_broker_costs_neither_the_connection_nor_an_event() {
    broker_halted_for_long("8192").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_does_it_when_there_is_no_room_for_another_event() {
    broker_halted_for_long("20").await;
}

/// A broker that stood for longer than its session is shut out by the controller. Until its next
/// heartbeat it says that there are no brokers at all, and the client library believes that and
/// never asks again.
#[tokio::test(flavor = "multi_thread")]
async fn brokers_that_the_client_has_lost_are_found_again() {
    const ROUNDS: usize = 8;
    const SESSION: Duration = Duration::from_secs(1);
    let session = format!("broker.session.timeout.ms={}", SESSION.as_millis());
    let heartbeat = "broker.heartbeat.interval.ms=300";
    let kafka = OwnKafka::start_with(&["--prop", &session, "--prop", heartbeat]);
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    let mut outboxd = Setup::of(&database).start().await;
    let mut written = vec![database.event("CLM-0", "{}").await.to_string()];
    database.all_confirmed().await;
    let mut longest = Duration::ZERO;
    for _ in 0..ROUNDS {
        kafka.halt();
        let begun = Instant::now();
        // The time is what makes the controller shut it out.
        while begun.elapsed() < 2 * SESSION {
            let key = format!("CLM-{}", written.len());
            written.push(database.event(&key, "{}").await.to_string());
        }
        kafka.go_on();
        let back = Instant::now();
        database.all_confirmed().await;
        longest = longest.max(back.elapsed());
    }
    let records = topic::read_all(&kafka.address(), &format!("{}.claim.events", database.name));
    // A new producer sends again what the old one was not told of.
    let mut seen = HashSet::new();
    let first_copies: Vec<String> = records
        .iter()
        .map(|record| record.id())
        .filter(|id| seen.insert(id.clone()))
        .collect();
    println!(
        "broker shut out {ROUNDS} times: everything delivered {longest:.1?} after it was back at the latest, producers given up: {}; {} events written, {} records delivered",
        outboxd
            .log()
            .matches("it does not find the brokers")
            .count(),
        written.len(),
        records.len()
    );
    assert!(first_copies == written, "all, and in order");
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}
