//! A topic that is missing, or that outboxd may not write to, holds its events up and loses none.

use crate::support::database::TestDatabase;
use crate::support::first_copies;
use crate::support::outboxd::Setup;
use crate::support::services::{OwnKafka, Services};
use crate::support::topic::{self, Record};

fn event(aggregate_type: &str, key: &str) -> String {
    format!(
        "INSERT INTO outbox (id, aggregate_type, aggregate_id, type, payload)
         VALUES (gen_random_uuid(), '{aggregate_type}', '{key}', 't', '{{}}');"
    )
}

fn keys(kafka: &OwnKafka, topic: &str) -> Vec<String> {
    let records = topic::read_all(&kafka.address(), topic);
    records.iter().map(Record::key_text).collect()
}

/// Four events, one of them for the topic of `second`, which cannot be had until `mend`; `words`
/// are what is said of it.
async fn holds_its_events_up(
    kafka: &OwnKafka,
    database: &TestDatabase,
    words: &[&str],
    mend: impl AsyncFnOnce(&str),
) {
    let [first, second] =
        ["first", "second"].map(|kind| format!("{}.{kind}.events", database.name));
    let mut outboxd = Setup::of(database).start().await;
    database
        .execute(&format!(
            "{} {} {} {}",
            event("first", "1"),
            event("second", "2").replace(
                "gen_random_uuid()",
                "'00000000-0000-0000-0000-000000000002'"
            ),
            event("second", "3"),
            event("first", "4"),
        ))
        .await;
    outboxd.says("Failed.").await;
    let said = outboxd.ready_becomes(503).await;
    let event = "the event 00000000-0000-0000-0000-000000000002 of table public.outbox";
    for word in words.iter().chain(&[event, second.as_str()]) {
        assert!(said.contains(word), "{word} is missing in {said}");
    }
    assert!(!database.confirmed(&database.wal_end().await).await);

    mend(&second).await;
    database.all_confirmed().await;
    outboxd.ready_becomes(200).await;
    assert_eq!(keys(kafka, &second), ["2", "3"]);
    // What was in flight with it may have come again, once, to see which it is.
    let of_first = keys(kafka, &first);
    assert!(of_first.len() <= 4, "{of_first:?}");
    assert_eq!(first_copies(of_first), ["1", "4"]);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_nobody_makes_is_named_and_waited_for() {
    let kafka = OwnKafka::start_with(&["--prop", "auto.create.topics.enable=false"]);
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    let first = format!("{}.first.events", database.name);
    topic::create(&kafka.address(), &first, 1).await;
    holds_its_events_up(&kafka, &database, &["create the topic"], async |second| {
        topic::create(&kafka.address(), second, 1).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_it_may_not_write_to_is_named_and_waited_for() {
    let kafka = OwnKafka::start_with(&[
        "--prop",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "--prop",
        "allow.everyone.if.no.acl.found=true",
    ]);
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    for kind in ["first", "second"] {
        let topic = format!("{}.{kind}.events", database.name);
        topic::create(&kafka.address(), &topic, 1).await;
    }
    // With this, all else is forbidden on the topic.
    let second = format!("{}.second.events", database.name);
    let readers = ["--allow-principal", "User:*", "--operation", "Read"];
    let of_second = ["--add", "--topic", &second];
    kafka.tool("acls", &[&of_second[..], &readers].concat());
    holds_its_events_up(
        &kafka,
        &database,
        &["grant the client Write"],
        async |second| {
            let writers = ["--allow-principal", "User:*", "--operation", "Write"];
            kafka.tool(
                "acls",
                &[&["--add", "--topic", second][..], &writers].concat(),
            );
        },
    )
    .await;
}
