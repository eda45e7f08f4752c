//! A lost database connection costs nothing: the same process goes on where it was, and what
//! the server sends again is not sent to the broker again (rule R4).

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::services::{OwnPostgres, Services};
use crate::support::workload::{Verdict, Workload};

#[tokio::test(flavor = "multi_thread")]
async fn ended_sessions_under_load_lose_nothing_and_repeat_nothing() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut outboxd = Setup::of(&database).start().await;
    let load = Workload::start(&database, 4).await;
    for round in 1..=20 {
        let target = load.committed() + 200;
        eventually("the writers go on", async || {
            (load.committed() > target).then_some(())
        })
        .await;
        database
            .execute(&format!(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{}' AND active",
                database.name
            ))
            .await;
        eventually("it streams again", async || {
            (outboxd.log().matches("Streaming ").count() > round).then_some(())
        })
        .await;
    }
    let (events, verdict) = load.judge(&database).await;
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
    println!("20 ended sessions under load: {events} events, {verdict:?}");
    assert_eq!(verdict, Verdict::default());
}

/// Restarts a server of this version under load, now gently and now not.
async fn server_restarted_under_load(version: u32) {
    let postgres = OwnPostgres::start(version);
    let mut database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    let mut outboxd = Setup::of(&database).start().await;
    let load = Workload::start(&database, 4).await;
    for (round, mode) in ["fast", "immediate", "fast", "kill"]
        .into_iter()
        .enumerate()
    {
        let target = load.committed() + 300;
        eventually("the writers go on", async || {
            (load.committed() > target).then_some(())
        })
        .await;
        postgres.stop(mode);
        postgres.start_again(&[]);
        eventually("it streams again", async || {
            (outboxd.log().matches("Streaming ").count() > round + 1).then_some(())
        })
        .await;
    }
    database.reconnect().await;
    let (events, verdict) = load.judge(&database).await;
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
    println!("PostgreSQL {version} restarted 4 times under load: {events} events, {verdict:?}");
    assert_eq!(verdict, Verdict::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_postgresql_14_costs_nothing() {
    server_restarted_under_load(14).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_postgresql_18_costs_nothing() {
    server_restarted_under_load(18).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_dropped_while_streaming_is_an_error_and_never_made_anew() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut outboxd = Setup::of(&database).start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let drop_slot = format!(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{0}' AND active;
         SELECT pg_drop_replication_slot('{0}')",
        database.name
    );
    eventually("the slot is dropped", async || {
        database.sql.batch_execute(&drop_slot).await.ok()
    })
    .await;
    outboxd.says("is gone").await;
    assert_eq!(database.slot("slot_name").await, None);
    assert_eq!(outboxd.stop().await, 0);

    // Also not at the next start, in any process: the publication's comment remembers it.
    let setup = Setup::of(&database);
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("is gone"), "{said}");
    assert_eq!(database.slot("slot_name").await, None);
    // The way out that it names.
    database
        .execute(&format!("COMMENT ON PUBLICATION {} IS NULL", database.name))
        .await;
    setup.start().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_after_the_start_leaves_the_process_up_and_stoppable() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut outboxd = Setup::of(&database).start().await;
    // An event that no topic can take.
    database
        .execute("INSERT INTO outbox VALUES (gen_random_uuid(), 'not a topic', 'k', 't', '{}')")
        .await;
    outboxd.says("Failed.").await;
    assert!(outboxd.log().contains("not a topic"), "{}", outboxd.log());
    assert_eq!(outboxd.stop().await, 0);
}
