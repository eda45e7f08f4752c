//! A clean stop and restart loses nothing and repeats nothing (rule R4).

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::services::Services;
use crate::support::workload::{Verdict, Workload};

const RESTARTS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn ten_clean_restarts_under_load_lose_nothing_and_send_nothing_twice() {
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
        assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
        outboxd = setup.start().await;
    }
    let (events, verdict) = load.judge(&database).await;
    println!("10 x SIGTERM and restart under load: {events} events, {verdict:?}");
    assert_eq!(verdict, Verdict::default());
}
