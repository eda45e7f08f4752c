//! Asking whether the brokers answer leaves no trace in the cluster.

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::{OwnKafka, Services};
use crate::support::{eventually, topic};

/// The broker makes topics that somebody asks for by their name.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_was_deleted_does_not_come_back() {
    let kafka = OwnKafka::start();
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    let mut setup = Setup::of(&database);
    setup
        .environment
        .push(("OUTBOXD_LOG".to_owned(), "info,outboxd=debug".to_owned()));
    let outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let topic = format!("{}.claim.events", database.name);
    assert!(topic::exists(&kafka.address(), &topic));
    topic::delete(&kafka.address(), &topic).await;
    let answers = || outboxd.log().matches("A broker answers").count();
    let before = answers();
    eventually("brokers are asked three times", async || {
        (answers() >= before + 3).then_some(())
    })
    .await;
    assert!(!topic::exists(&kafka.address(), &topic));

    // An event makes it anew.
    database.event("CLM-2", "{}").await;
    database.all_confirmed().await;
    assert_eq!(topic::count(&kafka.address(), &topic), 1);
}
