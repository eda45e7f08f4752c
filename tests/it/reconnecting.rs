//! A lost database connection costs nothing: the same process goes on where it was, and what
//! the server sends again is not sent to the broker again (rule R4).

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::services::{OwnPostgres, Services};
use crate::support::topic;
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

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_reconnects_leave_nothing_behind_and_never_take_a_third_session() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    // The catalog is asked whenever the stream describes the table.
    for converter in ["key.converter", "value.converter"] {
        setup.set(converter, "org.apache.kafka.connect.json.JsonConverter");
    }
    let mut outboxd = setup.start().await;
    let watcher = database.session().await;
    let (tell, mut ended) = tokio::sync::oneshot::channel::<()>();
    let name = database.name.clone();
    let watching = tokio::spawn(async move {
        let mut most = 0_i64;
        while ended.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Empty) {
            let sessions = watcher
                .query_one(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name = 'outboxd'",
                    &[&name],
                )
                .await
                .expect("the server answers");
            most = most.max(sessions.get(0));
        }
        most
    });
    let mut early = (0, 0);
    for round in 1..=500 {
        database.event("CLM-1", "{}").await;
        database.all_confirmed().await;
        if round == 20 {
            early = outboxd.threads_and_descriptors();
        }
        database
            .execute(&format!(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{}' AND active",
                database.name
            ))
            .await;
    }
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let late = outboxd.threads_and_descriptors();
    let _ = tell.send(());
    let most = watching.await.unwrap();
    let reconnects = outboxd.metric("outboxd_reconnects_total").await;
    println!(
        "{reconnects:?} reconnects: threads and descriptors {early:?} after 20, {late:?} at the end; at most {most} sessions"
    );
    assert!(reconnects >= Some(500.0));
    // A thread of tokio's for blocking work comes and goes.
    assert!(late.0 <= early.0 + 2 && late.1 <= early.1 + 2);
    // One that was ended or dropped can still be seen for a moment.
    assert!(most <= 3, "{most} sessions");
    assert_eq!(outboxd.stop().await, 0);
    let topic = format!("{}.claim.events", database.name);
    assert_eq!(topic::count(&database.services.kafka, &topic), 501);
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
