//! An event that can never be sent as it is holds up what is behind it, or goes to the dead-letter
//! topic; nothing overtakes it, nothing is lost, and nothing comes twice.

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::Services;
use crate::support::topic::{self, Record};
use crate::support::{eventually, first_copies};

/// What a topic of these tests takes at once.
const SMALL: &str = "3000";

/// Each in a transaction with others, and among many in flight.
const WRITE: &str = "
    INSERT INTO outbox SELECT gen_random_uuid(), 'claim', 'k', 't', jsonb_build_object('n', n)
        FROM generate_series(1, 50) AS n;
    BEGIN;
    INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', 'k', 't', '{\"n\": 51}');
    INSERT INTO outbox VALUES ('00000000-0000-0000-0000-000000000052', 'claim', 'k', 't',
        jsonb_build_object('n', 52, 'filler', repeat('x', 5000)));
    INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', 'k', 't', '{\"n\": 53}');
    COMMIT;
    INSERT INTO outbox SELECT gen_random_uuid(), 'claim', 'k', 't', jsonb_build_object('n', n)
        FROM generate_series(54, 100) AS n";

fn numbers(records: &[Record]) -> Vec<u64> {
    let number = |record: &Record| {
        let value: serde_json::Value = serde_json::from_str(&record.value_text()).unwrap();
        value["n"].as_u64().unwrap()
    };
    records.iter().map(number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_too_large_stops_before_it_and_goes_on_when_the_limit_is_raised() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let kafka = &database.services.kafka;
    let topic = format!("{}.claim.events", database.name);
    topic::create_small(kafka, &topic, SMALL).await;
    let mut outboxd = Setup::of(&database).start().await;
    database.execute(WRITE).await;
    outboxd.says("Failed.").await;
    let log = outboxd.log();
    for word in [
        "the event 00000000-0000-0000-0000-000000000052 of table public.outbox, in the transaction that commits at ",
        &format!("a record for topic {topic} was not delivered"),
        "raise message.max.bytes",
        "records in flight was refused",
    ] {
        assert!(log.contains(word), "{word} is missing in {log}");
    }
    assert_eq!(
        outboxd.metric("outboxd_poison_events_total").await,
        Some(1.0)
    );
    assert_eq!(outboxd.get("/health/ready").await.0, 503);
    // The one before it in its transaction is there, and nothing behind it.
    assert_eq!(numbers(&topic::read_all(kafka, &topic)).last(), Some(&51));

    topic::set_max_message_bytes(kafka, &topic, "1000000").await;
    database.all_confirmed().await;
    let records = topic::read_all(kafka, &topic);
    // Those that were in flight with it may have come again; each first copy is in its order.
    let first = first_copies(numbers(&records));
    println!(
        "limit raised: {} records of {} events",
        records.len(),
        first.len()
    );
    assert_eq!(first, (1..=100).collect::<Vec<_>>());
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_too_large_goes_to_the_dead_letter_topic_and_the_rest_goes_on() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let kafka = &database.services.kafka;
    let topic = format!("{}.claim.events", database.name);
    let dead_letters = format!("{}.dead", database.name);
    topic::create_small(kafka, &topic, SMALL).await;
    let mut setup = Setup::of(&database);
    setup.set("outboxd.poison.policy", "dead-letter");
    setup.set("outboxd.poison.topic", &dead_letters);
    let mut outboxd = setup.start().await;
    database.execute(WRITE).await;
    database.all_confirmed().await;
    let records = topic::read_all(kafka, &topic);
    let first = first_copies(numbers(&records));
    let expected: Vec<u64> = (1..=100).filter(|number| *number != 52).collect();
    assert_eq!(first, expected);

    let dead = topic::read_all(kafka, &dead_letters);
    assert_eq!(numbers(&dead), [52]);
    let id = "00000000-0000-0000-0000-000000000052";
    assert_eq!(
        (dead[0].id().as_str(), dead[0].key_text().as_str()),
        (id, "k")
    );
    for (name, words) in [
        ("eventType", "t"),
        ("__outboxd.error.topic", topic.as_str()),
        ("__outboxd.error.reason", "was not delivered"),
        ("__outboxd.error.table", "public.outbox"),
        ("__outboxd.error.lsn", "0/"),
        ("__outboxd.error.event.id", id),
    ] {
        let value = dead[0].header(name).unwrap_or_default();
        assert!(value.contains(words), "{name}: {value}");
    }
    assert_eq!(
        outboxd.metric("outboxd_dead_letters_total").await,
        Some(1.0)
    );
    assert_eq!(
        outboxd.metric("outboxd_poison_events_total").await,
        Some(0.0)
    );
    eventually("it is ready", async || {
        (outboxd.get("/health/ready").await.0 == 200).then_some(())
    })
    .await;
    assert!(outboxd.log().contains("went to the dead-letter topic"));
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

/// The broker holds whole batches against the topic's limit.
#[tokio::test(flavor = "multi_thread")]
async fn records_that_are_too_large_only_together_go_in_smaller_batches() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let kafka = &database.services.kafka;
    let topic = format!("{}.claim.events", database.name);
    topic::create_small(kafka, &topic, SMALL).await;
    let mut setup = Setup::of(&database);
    // Time enough for a batch to grow.
    setup.set("producer.override.linger.ms", "50");
    let mut outboxd = setup.start().await;
    for from in [1, 501] {
        let write = format!(
            "INSERT INTO outbox SELECT gen_random_uuid(), 'claim', 'k', 't', jsonb_build_object('n', n)
             FROM generate_series({from}, {from} + 499) AS n"
        );
        database.execute(&write).await;
        database.all_confirmed().await;
    }
    let log = outboxd.log();
    assert!(
        log.contains(&format!("Topic {topic} takes {SMALL} bytes")),
        "{log}"
    );
    assert_eq!(
        log.matches("records in flight was refused").count(),
        1,
        "{log}"
    );
    let first = first_copies(numbers(&topic::read_all(kafka, &topic)));
    assert_eq!(first, (1..=1000).collect::<Vec<_>>());
    assert_eq!(
        outboxd.metric("outboxd_poison_events_total").await,
        Some(0.0)
    );
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

/// The producer has a limit of its own: nothing that is in flight has to come again.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_over_the_producers_own_limit_is_known_before_it_is_sent() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let kafka = &database.services.kafka;
    let mut setup = Setup::of(&database);
    setup.set("producer.override.message.max.bytes", SMALL);
    let mut outboxd = setup.start().await;
    database.execute(WRITE).await;
    outboxd.says("Failed.").await;
    let log = outboxd.log();
    assert!(log.contains("the event 00000000-0000-0000-0000-000000000052 of table public.outbox"));
    assert!(!log.contains("records in flight was refused"), "{log}");
    let topic = format!("{}.claim.events", database.name);
    let expected: Vec<u64> = (1..=51).collect();
    assert_eq!(numbers(&topic::read_all(kafka, &topic)), expected);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_goes_nowhere_is_a_dead_letter_as_the_database_has_it() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let kafka = &database.services.kafka;
    let mut setup = Setup::of(&database);
    setup.set("outboxd.poison.policy", "dead-letter");
    setup.set("topic.prefix", &database.name);
    let mut outboxd = setup.start().await;
    database.event("before", "{}").await;
    database
        .execute(
            "INSERT INTO outbox VALUES (gen_random_uuid(), 'not a topic', 'k', 't', '{\"n\": 1}')",
        )
        .await;
    database.event("after", "{}").await;
    database.all_confirmed().await;
    let events = topic::read_all(kafka, &format!("{}.claim.events", database.name));
    let keys: Vec<String> = events.iter().map(Record::key_text).collect();
    assert_eq!(keys, ["before", "after"], "nothing comes twice");
    // The topic that nobody named.
    let dead = topic::read_all(kafka, &format!("{}.dead-letter", database.name));
    assert_eq!(numbers(&dead), [1]);
    assert_eq!(dead[0].key_text(), "k");
    assert_eq!(dead[0].header("__outboxd.error.topic"), None);
    let reason = dead[0].header("__outboxd.error.reason").unwrap();
    assert!(reason.contains("not a topic"), "{reason}");
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_that_is_refused_too_stops_and_names_both() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let kafka = &database.services.kafka;
    let topic = format!("{}.claim.events", database.name);
    let dead_letters = format!("{}.dead", database.name);
    topic::create_small(kafka, &topic, SMALL).await;
    topic::create_small(kafka, &dead_letters, SMALL).await;
    let mut setup = Setup::of(&database);
    setup.set("outboxd.poison.policy", "dead-letter");
    setup.set("outboxd.poison.topic", &dead_letters);
    let mut outboxd = setup.start().await;
    database.execute(WRITE).await;
    outboxd.says("Failed.").await;
    assert!(
        outboxd.log().contains(&format!(
            "a record for topic {dead_letters} was not delivered"
        )),
        "{}",
        outboxd.log()
    );
    topic::set_max_message_bytes(kafka, &dead_letters, "1000000").await;
    database.all_confirmed().await;
    assert_eq!(numbers(&topic::read_all(kafka, &dead_letters)), [52]);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}
