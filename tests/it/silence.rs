//! A server that says nothing for long is given up only when it is gone (rule R11).

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::proxy::{Direction, Fault, Framing, Proxy};
use crate::support::services::{OwnPostgres, Services, postgres_version};
use crate::support::topic;

/// Such a server would keep the slot for a client that is gone, for as long as TCP does.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_waits_for_ever_lets_go_of_the_slot_after_a_cut_that_nobody_tells_of() {
    let postgres = OwnPostgres::start_with(&["wal_sender_timeout=0"]);
    let database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    let target = format!("127.0.0.1:{}", database.services.pg_port);
    let proxy = Proxy::to(&target, Framing::Postgres).await;
    let mut setup = Setup::of(&database);
    setup.database_behind(&proxy);
    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    // Both ends stay connected, and nothing passes.
    for link in proxy.links() {
        link.set(Fault::Stalled(Direction::Both));
    }
    database.event("CLM-2", "{}").await;
    database.all_confirmed().await;
    let topic = format!("{}.claim.events", database.name);
    assert_eq!(topic::count(&database.services.kafka, &topic), 2);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

/// The server decodes a large transaction of others, from files, and sends nothing meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_busy_with_a_large_transaction_of_others_is_waited_for() {
    let postgres = OwnPostgres::start_with(&["logical_decoding_work_mem=64kB"]);
    let database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    let mut outboxd = Setup::of(&database).start().await;
    database
        .execute(
            "CREATE TABLE other (n int, filler text);
             INSERT INTO other SELECT n, repeat('x', 50) FROM generate_series(1, 1500000) AS n",
        )
        .await;
    let begun = std::time::Instant::now();
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    println!(
        "PostgreSQL {}: behind a transaction of 1,500,000 rows of others, an event took {:.1} s",
        postgres_version(),
        begun.elapsed().as_secs_f64()
    );
    let topic = format!("{}.claim.events", database.name);
    assert_eq!(topic::count(&database.services.kafka, &topic), 1);
    assert_eq!(outboxd.log().matches("Streaming ").count(), 1);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}
