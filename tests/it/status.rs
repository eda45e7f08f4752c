//! `outboxd status` tells where the slot stands, and whether pg_upgrade would lose anything.

use serde_json::Value;

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::Services;

fn json(setup: &Setup) -> Value {
    let said = setup.tell("status", &["--json"]);
    serde_json::from_str(&said.output).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pending_is_counted_and_an_upgrade_is_safe_only_without_it() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    setup
        .tell("status", &[])
        .expect(1, &[&database.name, "missing"]);
    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let standing = json(&setup);
    assert_eq!(standing["active"], true, "{standing}");
    assert_eq!(standing["application"], "outboxd", "{standing}");
    setup.tell("status", &["--for-upgrade"]).expect(
        1,
        &[
            "read by         outboxd",
            "Not safe to upgrade: outboxd still reads",
        ],
    );
    assert_eq!(outboxd.stop().await, 0);

    database.event("CLM-2", "{}").await;
    database.event("CLM-3", "{}").await;
    database.execute("UPDATE outbox SET type = 'changed'").await;
    let standing = json(&setup);
    assert_eq!(standing["pending_events"], 2, "{standing}");
    assert_eq!(standing["ready_for_upgrade"], false, "{standing}");
    assert!(
        standing["confirmed_lag_bytes"].as_u64().unwrap() > 0,
        "{standing}"
    );
    setup
        .tell("status", &[])
        .expect(0, &["read by         nobody", "2 events"]);
    setup
        .tell("status", &["--for-upgrade"])
        .expect(1, &["Not safe to upgrade: still to send: 2 events"]);

    // Looking moved nothing.
    let mut outboxd = setup.start().await;
    database.all_confirmed().await;
    assert_eq!(outboxd.stop().await, 0);
    // The log has gone on, but with nothing of the outbox.
    database.execute("CREATE TABLE other (n int)").await;
    setup
        .tell("status", &["--for-upgrade"])
        .expect(0, &["0 events", "Safe to upgrade: nothing is pending"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_transaction_shows_in_the_log_retained_and_not_in_the_lag() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    database.execute("CREATE TABLE other (t text)").await;
    let open = database.session().await;
    open.batch_execute("BEGIN; INSERT INTO other VALUES ('open')")
        .await
        .unwrap();
    for _ in 0..4 {
        database
            .execute("INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, 5000)")
            .await;
    }
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let standing = json(&setup);
    let number = |key: &str| standing[key].as_u64().unwrap();
    assert!(number("retained_wal_bytes") > 10_000_000, "{standing}");
    assert!(number("confirmed_lag_bytes") < 10_000_000, "{standing}");
    open.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(outboxd.stop().await, 0);
}
