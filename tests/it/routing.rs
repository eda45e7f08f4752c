//! Which rows become events, and in which order.

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::Services;
use crate::support::topic::{self, Record};

/// Runs the statements with outboxd streaming; what then lies in the topic of claims.
async fn events_of(statements: &[&str]) -> Vec<Record> {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let _outboxd = Setup::of(&database).start().await;
    for statement in statements {
        database.execute(statement).await;
    }
    // Makes sure that the topic exists, and comes last.
    database.event("last", "{}").await;
    database.all_confirmed().await;
    let mut records = topic::read_all(
        &database.services.kafka,
        &format!("{}.claim.events", database.name),
    );
    let last = records.pop().expect("the last event");
    assert_eq!(last.key_text(), "last");
    records
}

fn keys(records: &[Record]) -> Vec<String> {
    records.iter().map(Record::key_text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_rolled_back_is_never_sent() {
    let records = events_of(&[
        "BEGIN;
         INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', 'keep-1', 't', '{}');
         SAVEPOINT s;
         INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', 'gone', 't', '{}');
         ROLLBACK TO s;
         INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', 'keep-2', 't', '{}');
         COMMIT",
        "BEGIN; INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', 'gone', 't', '{}'); ROLLBACK",
    ])
    .await;
    assert_eq!(keys(&records), ["keep-1", "keep-2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_deleted_in_its_own_transaction_is_sent_and_its_deletion_is_not() {
    let records = events_of(&[
        "BEGIN; INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', 'brief', 't', '{}'); DELETE FROM outbox; COMMIT",
        "INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', 'kept', 't', '{}')",
        "UPDATE outbox SET type = 'changed'",
        "DELETE FROM outbox",
        "TRUNCATE outbox",
    ])
    .await;
    assert_eq!(keys(&records), ["brief", "kept"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn interleaved_transactions_come_in_the_order_of_their_commits() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let _outboxd = Setup::of(&database).start().await;
    let slow = database.session().await;
    let insert = |key: &str| {
        format!("INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', '{key}', 't', '{{}}')")
    };
    slow.batch_execute(&format!("BEGIN; {}", insert("A1")))
        .await
        .unwrap();
    database.execute(&insert("B")).await;
    slow.batch_execute(&format!("{}; COMMIT", insert("A2")))
        .await
        .unwrap();
    database.all_confirmed().await;
    let records = topic::read_all(
        &database.services.kafka,
        &format!("{}.claim.events", database.name),
    );
    assert_eq!(keys(&records), ["B", "A1", "A2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_one_copy_all_arrive_although_they_share_a_position() {
    let records = events_of(&[
        "CREATE TABLE staged AS SELECT gen_random_uuid() AS id, 'claim' AS aggregate_type, 'k' || i AS aggregate_id, 't' AS type, '{}'::jsonb AS payload, now() AS created_at FROM generate_series(1, 500) AS i",
        "COPY staged TO PROGRAM 'cat > /tmp/outboxd-copy-$PPID'",
        "COPY outbox FROM PROGRAM 'cat /tmp/outboxd-copy-$PPID; rm /tmp/outboxd-copy-$PPID'",
    ])
    .await;
    let expected: Vec<String> = (1..=500).map(|i| format!("k{i}")).collect();
    assert_eq!(keys(&records), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_tables_of_the_publication_are_passed_over() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    database
        .execute(&format!(
            "CREATE TABLE other (payload text);
             CREATE PUBLICATION {} FOR TABLE outbox, other WITH (publish = 'insert')",
            database.name
        ))
        .await;
    let mut setup = Setup::of(&database);
    setup.set("publication.autocreate.mode", "disabled");
    let _outboxd = setup.start().await;
    database
        .execute("INSERT INTO other SELECT 'x' FROM generate_series(1, 1000)")
        .await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let records = topic::read_all(
        &database.services.kafka,
        &format!("{}.claim.events", database.name),
    );
    assert_eq!(keys(&records), ["CLM-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_every_partition_are_sent_also_of_one_made_while_running() {
    let database = TestDatabase::empty(Services::shared()).await;
    database
        .execute(
            "CREATE TABLE outbox (id uuid, aggregate_type text, aggregate_id text, type text, payload jsonb, n int)
                 PARTITION BY RANGE (n);
             CREATE TABLE outbox_1 PARTITION OF outbox FOR VALUES FROM (0) TO (10)",
        )
        .await;
    let mut outboxd = Setup::of(&database).start().await;
    let event = |key: &str, n: u32| {
        format!(
            "INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', '{key}', 't', '{{}}', {n});"
        )
    };
    database.execute(&event("first", 1)).await;
    database
        .execute(&format!(
            "CREATE TABLE outbox_2 PARTITION OF outbox FOR VALUES FROM (10) TO (20);
             {} TRUNCATE outbox_1; DROP TABLE outbox_1; {}",
            event("second", 11),
            event("third", 12)
        ))
        .await;
    database.all_confirmed().await;
    let records = topic::read_all(
        &database.services.kafka,
        &format!("{}.claim.events", database.name),
    );
    assert_eq!(keys(&records), ["first", "second", "third"]);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_added_while_running_never_hurts_and_a_missing_one_stops_with_its_name() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("outboxd.on.fatal", "exit");
    let mut outboxd = setup.start().await;
    database.event("before", "{}").await;
    database
        .execute("ALTER TABLE outbox ADD COLUMN tenant text DEFAULT 'x'")
        .await;
    database.event("after", "{}").await;
    database.all_confirmed().await;

    database
        .execute("ALTER TABLE outbox RENAME COLUMN aggregate_id TO renamed")
        .await;
    database
        .execute("INSERT INTO outbox (id, aggregate_type, renamed, type, payload) VALUES (gen_random_uuid(), 'claim', 'waits', 't', '{}')")
        .await;
    assert_eq!(outboxd.exit_code().await, 1);
    // The position is untouched: the next start meets the same row.
    let mut again = setup.spawn();
    assert_eq!(again.exit_code().await, 1);
    for log in [outboxd.log(), again.log()] {
        assert!(
            log.contains("aggregate_id") && log.contains("public.outbox"),
            "{log}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_always_goes_to_the_partition_the_java_client_chose() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let topic = format!("{}.claim.events", database.name);
    topic::create(&database.services.kafka, &topic, 12).await;
    let _outboxd = Setup::of(&database).start().await;
    // Computed by org.apache.kafka.clients.producer.internals.BuiltInPartitioner:
    // toPositive(murmur2(key)) % 12.
    let expected = [
        ("21", -973932308_i32),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        // BR-092: an empty key is a key.
        ("", 275646681),
    ];
    for (key, _) in expected {
        database.event(key, "{}").await;
    }
    database.all_confirmed().await;
    let records = topic::read_all(&database.services.kafka, &topic);
    for (key, hash) in expected {
        let record = records
            .iter()
            .find(|record| record.key_text() == key)
            .expect("the event");
        assert_eq!(record.partition, (hash & 0x7fff_ffff) % 12, "{key}");
    }
}
