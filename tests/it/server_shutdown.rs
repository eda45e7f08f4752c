//! Rule R11: a dead broker never keeps PostgreSQL from stopping, and nothing is lost by it.

use std::time::Instant;

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::services::{OwnKafka, OwnPostgres, Services, postgres_version};
use crate::support::topic;

#[tokio::test(flavor = "multi_thread")]
async fn the_server_stops_fast_with_a_dead_broker() {
    let kafka = OwnKafka::start_to_halt();
    let postgres = OwnPostgres::start();
    let services = Services::shared()
        .with_kafka(&kafka)
        .with_postgres(&postgres);
    let mut database = TestDatabase::with_outbox(services).await;
    let mut setup = Setup::of(&database);
    setup.set("status.update.interval.ms", "50");
    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    kafka.halt();
    let pending = database.event("CLM-2", "{}").await;
    database.all_read().await;

    let begun = Instant::now();
    // Waits until the server is gone, and fails after a minute.
    postgres.stop("fast");
    println!(
        "PostgreSQL {} stopped fast with a dead broker and an event pending: {:?}",
        postgres_version(),
        begun.elapsed()
    );
    kafka.go_on();
    postgres.start_again(&[]);
    database.reconnect().await;
    database.all_confirmed().await;
    let records = topic::read_all(&kafka.address(), &format!("{}.claim.events", database.name));
    let ids: Vec<String> = records.iter().map(|record| record.id()).collect();
    assert_eq!(ids.len(), 2, "each once: {ids:?}");
    assert_eq!(ids[1], pending.to_string());
    assert_eq!(outboxd.stop().await, 0);
}

/// BR-051: somebody else's stream holds the shutdown up, and outboxd tries to come back meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_to_come_back_do_not_keep_a_server_from_stopping() {
    let postgres = OwnPostgres::start();
    let services = Services::shared().with_postgres(&postgres);
    let mut database = TestDatabase::with_outbox(services.clone()).await;
    let of_others = TestDatabase::with_outbox(services).await;
    let mut outboxd = Setup::of(&database).start().await;
    let another = Setup::of(&of_others).start().await;
    another.signal("STOP");
    of_others.event("CLM-1", "{}").await;
    let retries = async || {
        let count = outboxd.metric("outboxd_errors_total,class=\"retry\"").await;
        count.unwrap_or_default()
    };
    let before = retries().await;
    let postgres = std::thread::scope(|scope| {
        let stopping = scope.spawn(|| postgres.stop("fast"));
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                eventually("outboxd tries to come back", async || {
                    (retries().await >= before + 4.0).then_some(())
                })
                .await;
            });
        });
        another.signal("CONT");
        stopping.join().expect("the server stops");
        &postgres
    });
    postgres.start_again(&[]);
    database.reconnect().await;
    database.event("CLM-2", "{}").await;
    database.all_confirmed().await;
    let topic = format!("{}.claim.events", database.name);
    assert_eq!(topic::count(&database.services.kafka, &topic), 1);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

/// BR-050: with everything acknowledged the server waits for nobody, also not for a report of what
/// others have just written; outboxd comes back by itself.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_stops_fast_under_an_idle_outbox() {
    let postgres = OwnPostgres::start();
    let mut database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    let mut outboxd = Setup::of(&database).start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    database
        .execute("CREATE TABLE other AS SELECT repeat('x', 1000) FROM generate_series(1, 50000)")
        .await;
    let begun = Instant::now();
    postgres.stop("fast");
    println!(
        "PostgreSQL {} stopped fast under an idle outbox: {:?}",
        postgres_version(),
        begun.elapsed()
    );
    // So many times it tried, and was not let in.
    let attempts = outboxd.metric("outboxd_errors_total,class=\"retry\"").await;
    postgres.start_again(&[]);
    database.reconnect().await;
    database.event("CLM-2", "{}").await;
    database.all_confirmed().await;
    let topic = format!("{}.claim.events", database.name);
    assert_eq!(topic::count(&database.services.kafka, &topic), 2);
    println!("while it was stopping: {attempts:?} attempts");
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}
