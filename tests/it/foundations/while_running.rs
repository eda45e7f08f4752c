use super::{foundations, outgrow_the_slot, slot_is_lost};
use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::{Outboxd, Setup};
use crate::support::services::{OwnKafka, OwnPostgres, Services, postgres_version};
use crate::support::topic;

/// Waits until it has failed with these words, and asserts what whoever watches it sees; the
/// slot and the publication stay as they were after `spoil`.
async fn fails_with(outboxd: &Outboxd, database: &TestDatabase, words: &[&str]) {
    let said = eventually("it fails", async || {
        let (code, said) = outboxd.get("/health/ready").await;
        (code == 503 && said.contains(r#""state":"failed""#)).then_some(said)
    })
    .await;
    let before = foundations(database).await;
    for word in words {
        let word = word.replace("$N", &database.name);
        assert!(said.contains(&word), "{word} is missing in {said}");
        assert!(outboxd.log().contains(&word), "{}", outboxd.log());
    }
    assert_eq!(outboxd.get("/health/live").await.0, 200);
    assert!(outboxd.metric("outboxd_errors_total,class=\"fatal\"").await > Some(0.0));
    assert_eq!(outboxd.metric("outboxd_ready").await, Some(0.0));
    assert_eq!(outboxd.metric("outboxd_streaming").await, Some(0.0));
    assert_eq!(foundations(database).await, before);
}

/// `spoil` makes a running connector fail with these words, and `mend` lets it go on by itself.
/// `$N` stands for the database's, slot's and publication's name.
async fn fails_and_goes_on(spoil: &str, words: &[&str], mend: &str) {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut outboxd = Setup::of(&database).start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let statement = |sql: &str| sql.replace("$N", &database.name);
    database.execute(&statement(spoil)).await;
    fails_with(&outboxd, &database, words).await;
    database.execute(&statement(mend)).await;
    database.event("CLM-2", "{}").await;
    database.all_confirmed().await;
    assert_eq!(outboxd.get("/health/ready").await.0, 200);
    let topic = format!("{}.claim.events", database.name);
    assert_eq!(topic::count(&database.services.kafka, &topic), 2);
    assert_eq!(outboxd.stop().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_taken_out_of_the_publication() {
    fails_and_goes_on(
        "CREATE TABLE other (n int PRIMARY KEY); ALTER PUBLICATION $N SET TABLE other",
        &["Publication $N is without table public.outbox"],
        "ALTER PUBLICATION $N ADD TABLE outbox",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_without_inserts() {
    fails_and_goes_on(
        "ALTER PUBLICATION $N SET (publish = 'update')",
        &["Publication $N does not publish inserts"],
        "ALTER PUBLICATION $N SET (publish = 'insert')",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_table() {
    fails_and_goes_on(
        "ALTER TABLE outbox RENAME TO outbox_old",
        &["Publication $N publishes public.outbox_old: was the outbox renamed?"],
        "ALTER TABLE outbox_old RENAME TO outbox",
    )
    .await;
}

/// Events are kept from growing old by starting a new table; the publication stays with the old one.
#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_table_with_a_new_one_in_its_place() {
    fails_and_goes_on(
        "ALTER TABLE outbox RENAME TO outbox_old; CREATE TABLE outbox (LIKE outbox_old INCLUDING ALL)",
        &["Publication $N is without table public.outbox"],
        "ALTER PUBLICATION $N SET TABLE outbox",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_is_gone() {
    fails_and_goes_on(
        "ALTER TABLE outbox RENAME aggregate_id TO id_of_aggregate",
        &["no column 'aggregate_id'"],
        "ALTER TABLE outbox RENAME id_of_aggregate TO aggregate_id",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_publication() {
    // With no row written meanwhile the slot passes over nothing.
    fails_and_goes_on(
        "DROP PUBLICATION $N",
        &["Publication $N does not exist, although replication slot $N does"],
        "CREATE PUBLICATION $N FOR TABLE outbox",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_written_to_a_renamed_table_is_not_passed_over() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    let outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let confirmed = database.slot("confirmed_flush_lsn").await.unwrap();
    database
        .execute(
            "BEGIN;
             ALTER TABLE outbox RENAME TO outbox_old;
             INSERT INTO outbox_old VALUES (gen_random_uuid(), 'claim', 'CLM-2', 'ClaimSubmitted', '{}');
             COMMIT",
        )
        .await;
    fails_with(
        &outboxd,
        &database,
        &["the outbox table public.outbox under another name"],
    )
    .await;
    // Not beyond the transaction with the event.
    let pending = database
        .ask(&format!(
            "SELECT (pg_wal_lsn_diff(confirmed_flush_lsn, '{confirmed}') < 10000)::text
             FROM pg_replication_slots WHERE slot_name = '{}'",
            database.name
        ))
        .await;
    assert_eq!(pending.as_deref(), Some("true"));
    drop(outboxd);
    // The way out that it names.
    setup.set("table.include.list", "public.outbox_old");
    let _outboxd = setup.start().await;
    database.all_confirmed().await;
    let records = topic::read_all(
        &database.services.kafka,
        &format!("{}.claim.events", database.name),
    );
    let keys: Vec<String> = records.iter().map(|record| record.key_text()).collect();
    assert_eq!(keys, ["CLM-1", "CLM-2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_filter_is_warned_of_and_lets_the_rest_pass() {
    // Row filters came with 15.
    let postgres = OwnPostgres::start_version(postgres_version().max(15), &[]);
    let database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    let mut outboxd = Setup::of(&database).start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    database
        .execute(&format!(
            "ALTER PUBLICATION {0} SET (publish = 'insert');
             ALTER PUBLICATION {0} SET TABLE outbox WHERE (aggregate_type = 'claim')",
            database.name
        ))
        .await;
    outboxd.says("only rows WHERE").await;
    database.event("CLM-2", "{}").await;
    database.all_confirmed().await;
    assert_eq!(outboxd.get("/health/ready").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_slot() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let drop_slot = format!(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{0}' AND active;
         SELECT pg_drop_replication_slot('{0}')",
        database.name
    );
    eventually("the slot is dropped", async || {
        database.sql.batch_execute(&drop_slot).await.ok()
    })
    .await;
    fails_with(
        &outboxd,
        &database,
        &["slot $N is missing, although it was in use"],
    )
    .await;
    eventually("the metric says so", async || {
        (outboxd.metric("outboxd_slot_missing").await == Some(1.0)).then_some(())
    })
    .await;
    assert_eq!(database.slot("slot_name").await, None);
    // The way out that it names.
    database
        .execute(&format!("COMMENT ON PUBLICATION {} IS NULL", database.name))
        .await;
    assert_eq!(outboxd.stop().await, 0);
    setup.start().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_the_server_gives_up() {
    let postgres = OwnPostgres::start_with(&["max_slot_wal_keep_size=1MB"]);
    let kafka = OwnKafka::start();
    let services = Services::shared()
        .with_postgres(&postgres)
        .with_kafka(&kafka);
    let database = TestDatabase::with_outbox(services).await;
    let outboxd = Setup::of(&database).start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    // What waits for the broker holds the slot's position.
    kafka.halt();
    database.event("CLM-2", "{}").await;
    outgrow_the_slot(&database).await;
    fails_with(
        &outboxd,
        &database,
        &[slot_is_lost(), "max_slot_wal_keep_size"],
    )
    .await;
    let lost = "outboxd_slot_wal_status,status=\"lost\"";
    eventually("the metric says so", async || {
        (outboxd.metric(lost).await == Some(1.0)).then_some(())
    })
    .await;
    kafka.go_on();
}
