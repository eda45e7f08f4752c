//! A topic that takes nothing for a while holds the position before its event, whatever else is
//! acknowledged meanwhile (rules R1 to R3).

use std::collections::BTreeSet;

use crate::support::cluster::OwnCluster;
use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::second_slot::SecondSlot;
use crate::support::services::Services;
use crate::support::topic::{self, Record};
use crate::support::{eventually, first_copies};

const SLOW: &str = "slow";

fn event(aggregate_type: &str, key: &str) -> String {
    format!(
        "INSERT INTO outbox (id, aggregate_type, aggregate_id, type, payload)
         VALUES (gen_random_uuid(), '{aggregate_type}', '{key}', 't', '{{}}');"
    )
}

/// Brokers of which one is down, so that the topic for `slow`, which asks for all of them, takes
/// nothing, and the database beside them. With the id of the broker that is down.
async fn with_a_slow_topic() -> (OwnCluster, i32, TestDatabase) {
    let cluster = tokio::task::block_in_place(OwnCluster::start);
    let services = Services {
        kafka: cluster.addresses(),
        ..Services::shared()
    };
    let database = TestDatabase::with_outbox(services).await;
    let [slow, fast] = topics(&database);
    let all = ("min.insync.replicas", "3");
    topic::create_set(&cluster.addresses(), &slow, 3, &[all]).await;
    topic::create_replicated(&cluster.addresses(), &fast, 1, 3).await;
    let down = cluster.leader(&slow, 0).await % 3 + 1;
    cluster.broker(down).stop(true);
    (cluster, down, database)
}

fn topics(database: &TestDatabase) -> [String; 2] {
    [SLOW, "fast"].map(|kind| format!("{}.{kind}.events", database.name))
}

fn keys(records: &[Record]) -> Vec<String> {
    records.iter().map(Record::key_text).collect()
}

/// BR-001, BR-008 and BR-096.
#[tokio::test(flavor = "multi_thread")]
async fn later_acknowledgements_of_another_topic_confirm_nothing_past_an_event_in_flight() {
    let (cluster, down, database) = with_a_slow_topic().await;
    let kafka = cluster.addresses();
    let [slow, fast] = topics(&database);
    let setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    let second = SecondSlot::create(&database).await;
    // Its first row stands in the log before all the others, and its commit behind one of them.
    let late = database.session().await;
    late.batch_execute(&format!("BEGIN; {}", event(SLOW, "A1")))
        .await
        .unwrap();
    database.execute(&event("fast", "B")).await;
    let pending = uuid::Uuid::new_v4();
    let last = event(SLOW, "A2").replace("gen_random_uuid()", &format!("'{pending}'"));
    late.batch_execute(&format!("{last} COMMIT")).await.unwrap();
    let commit = second.commit_of(&database, &pending.to_string()).await;
    for number in 0..49 {
        database.execute(&event("fast", &number.to_string())).await;
    }
    let all_of_fast = async || (topic::count(&kafka, &fast) >= 50).then_some(());
    eventually("the other topic takes all of its events", all_of_fast).await;
    database.all_read().await;
    assert!(!database.confirmed(&commit).await);
    outboxd.kill();
    let mut outboxd = setup.start().await;
    database.all_read().await;
    assert!(!database.confirmed(&commit).await);

    tokio::task::block_in_place(|| cluster.broker(down).start_again());
    database.all_confirmed().await;
    // The leader may have had what the process that was killed had sent, without acknowledging it.
    let of_slow = keys(&topic::read_all(&kafka, &slow));
    assert!(of_slow.len() <= 4, "{of_slow:?}");
    assert_eq!(first_copies(of_slow), ["A1", "A2"]);
    let of_fast = topic::read_all(&kafka, &fast);
    let ids: BTreeSet<String> = of_fast.iter().map(Record::id).collect();
    assert_eq!(ids.len(), 50);
    assert_eq!(outboxd.log().matches("Streaming ").count(), 1);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

/// BR-012, BR-013, BR-091 and BR-100: batches just too small, and hardly any room behind them.
#[tokio::test(flavor = "multi_thread")]
async fn batches_that_are_just_full_leave_nothing_out_and_begin_anew() {
    const BATCH: usize = 100;
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("max.queue.size", &BATCH.to_string());
    setup.worker = Some(format!(
        "producer.batch.num.messages={BATCH}\n\
         producer.batch.size=1000000\n\
         producer.linger.ms=5\n\
         producer.client.id={}\n",
        "x".repeat(300)
    ));
    let mut outboxd = setup.start().await;
    let mut expected = Vec::new();
    for (wave, count) in [BATCH - 1, BATCH, BATCH + 1, 5_000].into_iter().enumerate() {
        database
            .execute(&format!(
                "INSERT INTO outbox SELECT gen_random_uuid(), 'claim', 'wave-{wave}-' || i, 't', to_jsonb(repeat('v' || i, 400))
                 FROM generate_series(1, {count}) AS i"
            ))
            .await;
        expected.extend((1..=count).map(|i| {
            let value = format!("\"{}\"", format!("v{i}").repeat(400));
            (format!("wave-{wave}-{i}"), value)
        }));
        database.all_confirmed().await;
    }
    // The second does not fit where the first is.
    for (key, size) in [("large", 990_000), ("next", 30_000)] {
        database
            .execute(&format!(
                "INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', '{key}', 't', to_jsonb(repeat('x', {size})))"
            ))
            .await;
        expected.push((key.to_owned(), format!("\"{}\"", "x".repeat(size))));
    }
    database.all_confirmed().await;
    let records = topic::read_all(
        &database.services.kafka,
        &format!("{}.claim.events", database.name),
    );
    let found: Vec<(String, String)> = records
        .iter()
        .map(|record| (record.key_text(), record.value_text()))
        .collect();
    assert!(found == expected, "each once, in order, byte for byte");
    assert!(
        outboxd.complaints().is_empty(),
        "{:?}",
        outboxd.complaints()
    );
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}
