//! The outbox table changes its shape while outboxd runs, and while it is down: each row is read as
//! it was written.

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::Services;
use crate::support::topic::{self, Record};

fn event(key: &str) -> String {
    event_with(key, "payload")
}

fn event_with(key: &str, payload: &str) -> String {
    format!(
        "INSERT INTO outbox (id, aggregate_type, aggregate_id, type, {payload})
         VALUES (gen_random_uuid(), 'claim', '{key}', 't', '{{\"key\": \"{key}\"}}');"
    )
}

/// What is on the topic of claims; each value has to name its record's key.
fn records(database: &TestDatabase) -> Vec<Record> {
    let topic = format!("{}.claim.events", database.name);
    let records = topic::read_all(&database.services.kafka, &topic);
    for record in &records {
        let expected = format!("{{\"key\": \"{}\"}}", record.key_text());
        assert_eq!(record.value_text(), expected);
    }
    records
}

fn keys(database: &TestDatabase) -> Vec<String> {
    records(database).iter().map(Record::key_text).collect()
}

const PAYLOAD: &str = "transforms.outbox.table.field.event.payload";

/// Columns that nothing is configured for come and go in the middle of a transaction.
#[tokio::test(flavor = "multi_thread")]
async fn each_row_has_the_shape_it_was_written_with_also_within_a_transaction() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut outboxd = Setup::of(&database).start().await;
    database
        .execute(&format!(
            "BEGIN; {}
             ALTER TABLE outbox ADD extra int DEFAULT 5; {}
             ALTER TABLE outbox DROP created_at; {}
             ALTER TABLE outbox ALTER aggregate_id TYPE varchar(40), ADD created_at timestamptz; {}
             COMMIT; {}",
            event("1"),
            event("2"),
            event("3"),
            event("4"),
            event("5"),
        ))
        .await;
    database.all_confirmed().await;
    assert_eq!(keys(&database), ["1", "2", "3", "4", "5"]);
    assert!(
        outboxd.complaints().is_empty(),
        "{:?}",
        outboxd.complaints()
    );
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

/// The column is renamed back and forth, and the configuration follows it.
#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_is_renamed_stops_it_until_the_configuration_names_it_again() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    database.execute(&event("1")).await;
    for (number, from, to) in [(2, "payload", "body"), (3, "body", "payload")] {
        database
            .execute(&format!(
                "ALTER TABLE outbox RENAME {from} TO {to}; {}",
                event_with(&number.to_string(), to)
            ))
            .await;
        outboxd.says("Failed.").await;
        let log = outboxd.log();
        assert!(log.contains(&format!("no column '{from}'")), "{log}");
        // Behind what was written before, and before what was written after.
        assert_eq!(keys(&database).len(), number - 1);
        assert_eq!(outboxd.stop().await, 0);
        setup.set(PAYLOAD, to);
        outboxd = setup.start().await;
        database.all_confirmed().await;
    }
    assert_eq!(keys(&database), ["1", "2", "3"]);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

/// What waits in the slot has the old shape, and the catalog the new one.
#[tokio::test(flavor = "multi_thread")]
async fn rows_written_before_and_after_a_change_while_it_was_down_are_both_read() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    assert_eq!(setup.start().await.stop().await, 0);
    let uuid = |n: u32| format!("00000000-0000-0000-0000-{n:012}");
    for number in 0..10 {
        database.execute(&event(&uuid(number))).await;
    }
    database
        .execute(
            "ALTER TABLE outbox DROP created_at, ADD tenant text DEFAULT 'x', ADD n serial,
                 ALTER aggregate_id TYPE uuid USING aggregate_id::uuid",
        )
        .await;
    for number in 10..20 {
        database.execute(&event(&uuid(number))).await;
    }
    let mut outboxd = setup.start().await;
    database.all_confirmed().await;
    let expected: Vec<String> = (0..20).map(uuid).collect();
    assert_eq!(keys(&database), expected);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

/// A configured column went away while outboxd was down, and what was written before has it.
#[tokio::test(flavor = "multi_thread")]
async fn rows_written_before_a_column_went_away_are_delivered_before_it_is_missed() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    assert_eq!(setup.start().await.stop().await, 0);
    database
        .execute(&format!(
            "{} {} ALTER TABLE outbox RENAME payload TO body;",
            event("1"),
            event("2")
        ))
        .await;
    let mut outboxd = setup.spawn();
    outboxd.says("is delivered first").await;
    outboxd.says("Failed.").await;
    assert!(outboxd.log().contains("no column 'payload'"));
    assert_eq!(keys(&database), ["1", "2"]);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
    database.execute(&event_with("3", "body")).await;
    setup.set(PAYLOAD, "body");
    let _outboxd = setup.start().await;
    database.all_confirmed().await;
    assert_eq!(keys(&database), ["1", "2", "3"]);
}

/// The header is configured before all rows have its column.
#[tokio::test(flavor = "multi_thread")]
async fn rows_older_than_a_placed_column_stop_it_or_do_without_the_header() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    assert_eq!(setup.start().await.stop().await, 0);
    database.execute(&event("1")).await;
    database
        .execute(&format!(
            "ALTER TABLE outbox ADD tenant text; ALTER TABLE outbox ALTER tenant SET DEFAULT 'acme'; {}",
            event("2")
        ))
        .await;
    setup.set(
        "transforms.outbox.table.fields.additional.placement",
        "type:header:eventType,tenant:header",
    );
    let mut outboxd = setup.spawn();
    outboxd.says("Failed.").await;
    let log = outboxd.log();
    assert!(log.contains("no column 'tenant'"), "{log}");
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
    setup.set(
        "transforms.outbox.table.fields.additional.error.on.missing",
        "false",
    );
    let _outboxd = setup.start().await;
    database.all_confirmed().await;
    let tenants: Vec<Option<String>> = records(&database)
        .iter()
        .map(|record| record.header("tenant"))
        .collect();
    assert_eq!(tenants, [None, Some("acme".to_owned())]);
}
