//! Rule R11: a dead broker never keeps PostgreSQL from stopping, and nothing is lost by it.

use std::time::Instant;

use crate::support::database::TestDatabase;
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
