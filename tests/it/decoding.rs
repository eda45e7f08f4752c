//! What else there is in the stream beside ordinary rows of ordinary types.

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::Services;
use crate::support::topic::{self, Record};

fn records(database: &TestDatabase, aggregate: &str) -> Vec<Record> {
    let topic = format!("{}.{aggregate}.events", database.name);
    topic::read_all(&database.services.kafka, &topic)
}

fn keys(database: &TestDatabase) -> Vec<String> {
    let records = records(database, "claim");
    records.iter().map(Record::key_text).collect()
}

fn event(key: &str) -> String {
    format!("INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', '{key}', 't', '{{}}');")
}

#[tokio::test(flavor = "multi_thread")]
async fn logical_messages_of_others_are_passed_over_wherever_they_stand() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    let beside = database.session().await;
    let transactional = "SELECT pg_logical_emit_message(true, 'app', 'x');";
    let immediate = "SELECT pg_logical_emit_message(false, 'other', 'y');";
    let mut expected = Vec::new();
    for round in 0..20 {
        let key = |place: &str| format!("{place}-{round}");
        beside
            .batch_execute(&format!("BEGIN; {}", event(&key("open"))))
            .await
            .unwrap();
        database
            .execute(&format!(
                "{immediate} BEGIN; {transactional} {} {immediate} {} COMMIT; {immediate}",
                event(&key("first")),
                event(&key("second")),
            ))
            .await;
        beside
            .batch_execute(&format!("{immediate} {transactional} COMMIT"))
            .await
            .unwrap();
        expected.extend([key("first"), key("second"), key("open")]);
        if round % 10 == 5 {
            database.all_confirmed().await;
            outboxd.kill();
            outboxd = setup.start().await;
        }
    }
    database.all_confirmed().await;
    assert_eq!(keys(&database), expected);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

/// Truncations, origins and types of the user's own come as messages of their own kinds.
#[tokio::test(flavor = "multi_thread")]
async fn truncations_origins_and_types_disturb_nothing() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let name = &database.name;
    database
        .execute(&format!(
            "CREATE TYPE mood AS ENUM ('good', 'bad');
             ALTER TABLE outbox ADD mood mood DEFAULT 'good';
             CREATE PUBLICATION {name} FOR TABLE outbox"
        ))
        .await;
    let mut outboxd = Setup::of(&database).start().await;
    database
        .execute(&format!(
            "SELECT pg_replication_origin_create('{name}');
             SELECT pg_replication_origin_session_setup('{name}');
             {} TRUNCATE outbox; {}
             SELECT pg_replication_origin_session_reset();
             {} SELECT pg_replication_origin_drop('{name}')",
            event("from elsewhere"),
            event("too"),
            event("from here"),
        ))
        .await;
    database.all_confirmed().await;
    assert_eq!(keys(&database), ["from elsewhere", "too", "from here"]);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

/// Two types of one name, one that grows while running, a domain and an array, in columns that
/// nothing is configured for.
#[tokio::test(flavor = "multi_thread")]
async fn types_of_the_users_own_disturb_nothing_and_may_change() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    database
        .execute(
            "CREATE SCHEMA other;
             CREATE TYPE other.kind AS ENUM ('one');
             CREATE TYPE kind AS ENUM ('first');
             CREATE DOMAIN reference AS text CHECK (value <> '');
             ALTER TABLE outbox ADD ours kind, ADD theirs other.kind, ADD reference reference, ADD tags text[]",
        )
        .await;
    let mut outboxd = Setup::of(&database).start().await;
    let columns = "id, aggregate_type, aggregate_id, type, payload, ours, theirs, reference, tags";
    database
        .execute(&format!(
            r#"INSERT INTO outbox ({columns})
               VALUES (gen_random_uuid(), 'claim', '1', 't', '{{}}', 'first', 'one', 'r', '{{"a,b","c\"d",NULL}}')"#
        ))
        .await;
    database
        .execute("ALTER TYPE kind ADD VALUE 'second'; ALTER TYPE other.kind ADD VALUE 'two'")
        .await;
    database
        .execute(&format!(
            "INSERT INTO outbox ({columns})
             VALUES (gen_random_uuid(), 'claim', '2', 't', '{{}}', 'second', 'two', NULL, NULL)"
        ))
        .await;
    database.all_confirmed().await;
    assert_eq!(keys(&database), ["1", "2"]);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn times_beyond_all_calendars_disturb_nothing() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    database
        .execute("ALTER TABLE outbox ADD local timestamp, ADD day date")
        .await;
    let mut outboxd = Setup::of(&database).start().await;
    let times = [
        "infinity",
        "-infinity",
        "0044-03-15 00:00:00 BC",
        "1969-12-31 23:59:59.999",
        "9999-12-31",
    ];
    for time in times {
        database
            .execute(&format!(
                "INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', '{time}', 't', '{{}}', '{time}', '{time}', '{time}')"
            ))
            .await;
    }
    database.all_confirmed().await;
    assert_eq!(keys(&database), times);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}
