//! Nothing is lost and the order of each key is kept, however outboxd ends.

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::services::Services;
use crate::support::workload::{Verdict, Workload};

const RESTARTS: usize = 10;

/// Restarts outboxd ten times under load, ending it with `end`; what the topic then shows.
async fn restarted_under_load(end: &str) -> (usize, Verdict) {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    let load = Workload::start(&database, 4).await;
    for _ in 0..RESTARTS {
        // Delivering again, and some events later: in the middle of things.
        let backlog = database.wal_end().await;
        eventually("the backlog is delivered", async || {
            database.confirmed(&backlog).await.then_some(())
        })
        .await;
        let target = load.committed() + 500;
        eventually("the writers go on", async || {
            (load.committed() > target).then_some(())
        })
        .await;
        match end {
            "TERM" => assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log()),
            _ => outboxd.kill(),
        }
        outboxd = setup.start().await;
    }
    load.judge(&database).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_clean_restarts_under_load_lose_nothing_and_send_nothing_twice() {
    let (events, verdict) = restarted_under_load("TERM").await;
    println!("10 x SIGTERM and restart under load: {events} events, {verdict:?}");
    assert_eq!(verdict, Verdict::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_crashes_under_load_lose_nothing_and_keep_the_order_of_each_key() {
    let (events, verdict) = restarted_under_load("KILL").await;
    println!("10 x kill -9 and restart under load: {events} events, {verdict:?}");
    assert_eq!(
        (verdict.missing, verdict.invented, verdict.out_of_order),
        (0, 0, 0),
        "{verdict:?}"
    );
}
