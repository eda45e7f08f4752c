//! outboxd starts again at positions where going by the numbers alone would leave events out.

use std::collections::BTreeMap;

use crate::support::database::TestDatabase;
use crate::support::outboxd::{Outboxd, Setup};
use crate::support::services::Services;
use crate::support::topic;

/// A process that dies at this failpoint, as by `kill -9`, and what it takes to get there.
async fn dies(setup: &mut Setup, failpoint: &str) -> Outboxd {
    setup.environment = vec![("FAILPOINTS".to_owned(), failpoint.to_owned())];
    let mut outboxd = setup.spawn();
    setup.environment.clear();
    outboxd.dies().await;
    outboxd
}

/// How often each key stands on the topic of claims, and the keys in the order of their first copies.
fn copies(database: &TestDatabase) -> (BTreeMap<String, usize>, Vec<String>) {
    let topic = format!("{}.claim.events", database.name);
    let mut copies = BTreeMap::new();
    let mut order = Vec::new();
    for record in topic::read_all(&database.services.kafka, &topic) {
        let count: &mut usize = copies.entry(record.key_text()).or_default();
        *count += 1;
        if *count == 1 {
            order.push(record.key_text());
        }
    }
    (copies, order)
}

fn numbered(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("{number:04}")).collect()
}

/// The end of one transaction is where the next one begins, so both have the same position.
#[tokio::test(flavor = "multi_thread")]
async fn the_transaction_that_begins_where_the_last_one_ended_is_not_left_out() {
    const PAIRS: usize = 20;
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    for pair in 0..PAIRS {
        database.event(&format!("{:04}", 2 * pair + 1), "{}").await;
        database.all_confirmed().await;
        match pair % 2 {
            0 => outboxd.kill(),
            _ => assert_eq!(outboxd.stop().await, 0),
        }
        database.event(&format!("{:04}", 2 * pair + 2), "{}").await;
        outboxd = setup.start().await;
    }
    database.all_confirmed().await;
    let (copies, order) = copies(&database);
    assert_eq!(order, numbered(2 * PAIRS));
    assert!(copies.values().all(|count| *count == 1), "{copies:?}");
}

/// All rows that one COPY writes to one page have the same position.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_cut_in_the_middle_is_completed() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    assert_eq!(setup.start().await.stop().await, 0);
    let file = format!("/tmp/outboxd-{}", database.name);
    database
        .execute(&format!(
            "COPY (SELECT gen_random_uuid(), 'claim', to_char(i, 'FM0000'), 't', '{{}}', now() FROM generate_series(1, 500) AS i) TO '{file}';
             COPY outbox FROM '{file}';
             COPY (SELECT 1) TO PROGRAM 'rm {file}'"
        ))
        .await;
    dies(&mut setup, "after-acknowledgement=100*off->return").await;
    let _outboxd = setup.start().await;
    database.all_confirmed().await;
    let (copies, order) = copies(&database);
    assert_eq!(order, numbered(500));
    assert!(copies.values().any(|count| *count == 2), "it was not cut");
    assert!(copies.values().all(|count| *count <= 2), "{copies:?}");
}

/// One of the transactions began before outboxd was stopped, and committed in the middle of those
/// that came while it was down.
#[tokio::test(flavor = "multi_thread")]
async fn what_came_while_it_was_down_arrives_also_when_it_dies_while_catching_up() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    let long = database.session().await;
    let rows = |from: usize, to: usize| {
        format!(
            "INSERT INTO outbox SELECT gen_random_uuid(), 'claim', to_char(i, 'FM0000'), 't', '{{}}' FROM generate_series({from}, {to}) AS i"
        )
    };
    long.batch_execute(&format!("BEGIN; {}", rows(501, 550)))
        .await
        .unwrap();
    database.event("0001", "{}").await;
    database.all_confirmed().await;
    assert_eq!(outboxd.stop().await, 0);
    for number in 2..=500 {
        database.event(&format!("{number:04}"), "{}").await;
    }
    long.batch_execute(&format!("{}; COMMIT", rows(551, 600)))
        .await
        .unwrap();
    database.execute(&rows(601, 1000)).await;
    for failpoint in [
        "after-decode=100*off->return",
        "after-enqueue=520*off->return",
        "before-confirmation=3*off->return",
    ] {
        dies(&mut setup, failpoint).await;
    }
    let _outboxd = setup.start().await;
    database.all_confirmed().await;
    let (_, order) = copies(&database);
    assert_eq!(order, numbered(1000));
}
