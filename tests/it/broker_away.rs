//! A broker that is away for longer than `wal_sender_timeout` costs neither the connection to
//! PostgreSQL nor an event (rules R1 and R5).

use std::time::{Duration, Instant};

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::second_slot::SecondSlot;
use crate::support::services::{OwnKafka, Services};
use crate::support::topic;

const WAL_SENDER_TIMEOUT: Duration = Duration::from_secs(3);

/// How the broker is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Away {
    /// Its connections stay open, and nothing answers.
    Halted,
    /// Nobody listens.
    Dead,
}

/// `queue` events may be in flight; when they are, the socket is not read any more.
async fn broker_away_for_long(away: Away, queue: &str) {
    let kafka = OwnKafka::start();
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
    let second = SecondSlot::create(&database);
    let mut written = vec![database.event("CLM-0", "{}").await.to_string()];
    database.all_confirmed().await;
    let walsender = database.slot("active_pid").await;
    assert!(walsender.is_some());

    match away {
        Away::Halted => kafka.halt(),
        Away::Dead => kafka.kill(),
    }
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
    match away {
        Away::Halted => kafka.go_on(),
        Away::Dead => kafka.start_again(),
    }
    let back = Instant::now();
    database.all_confirmed().await;
    let back = back.elapsed();

    assert_eq!(database.slot("active_pid").await, walsender);
    let records = topic::read_all(&kafka.address(), &format!("{}.claim.events", database.name));
    println!(
        "broker {away:?} for {gone:.1?} with wal_sender_timeout {WAL_SENDER_TIMEOUT:?} and max.queue.size {queue}: \
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
    broker_away_for_long(Away::Halted, "8192").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_does_it_when_there_is_no_room_for_another_event() {
    broker_away_for_long(Away::Halted, "20").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_does_a_broker_that_died_and_comes_back() {
    broker_away_for_long(Away::Dead, "20").await;
}
