//! What the first start makes, and when it refuses.

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::Services;
use crate::support::topic;

async fn publication(database: &TestDatabase) -> Option<String> {
    database
        .ask(&format!(
            "SELECT (SELECT concat_ws(' ', pubinsert, pubupdate, pubdelete, pubtruncate, puballtables)
                     FROM pg_publication WHERE pubname = '{}')",
            database.name
        ))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn publication_and_slot_are_made_in_this_order_and_nothing_more_is_published_than_needed() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut outboxd = Setup::of(&database).start().await;
    assert_eq!(publication(&database).await.as_deref(), Some("t t f f f"));
    let log = outboxd.log();
    let at = |text: &str| {
        log.find(text)
            .unwrap_or_else(|| panic!("{text} is not in {log}"))
    };
    assert!(at("Created publication") < at("Created replication slot"));
    assert_eq!(outboxd.stop().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_application_can_still_change_a_table_without_a_key() {
    let database = TestDatabase::empty(Services::shared()).await;
    database
        .execute("CREATE TABLE outbox (id uuid, aggregate_type text, aggregate_id text, type text, payload jsonb)")
        .await;
    let _outboxd = Setup::of(&database).start().await;
    database.event("CLM-1", "{}").await;
    database
        .execute("UPDATE outbox SET type = 'changed'; DELETE FROM outbox; TRUNCATE outbox")
        .await;
    assert_eq!(publication(&database).await.as_deref(), Some("t f f f f"));
    database.all_confirmed().await;
    assert_eq!(
        topic::count(
            &database.services.kafka,
            &format!("{}.claim.events", database.name)
        ),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn existing_rows_and_snapshot_mode_initial_are_refused_and_nothing_is_made() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    database.event("CLM-1", "{}").await;
    database.event("CLM-2", "{}").await;
    let mut setup = Setup::of(&database);
    setup.connector.remove("snapshot.mode");
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("2 rows") && said.contains("snapshot.mode=no_data"),
        "{said}"
    );
    assert_eq!(database.slot("slot_name").await, None);
    assert_eq!(publication(&database).await, None);

    // The way out that it named.
    setup.set("snapshot.mode", "no_data");
    let outboxd = setup.start().await;
    assert!(
        outboxd
            .log()
            .contains("2 rows of public.outbox were there before it"),
        "{}",
        outboxd.log()
    );
    drop(outboxd);
    // From now on the slot knows where to go on, and the mode does not matter.
    setup.connector.remove("snapshot.mode");
    setup.start().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_outbox_starts_with_snapshot_mode_initial() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("snapshot.mode", "initial");
    setup.start().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_outboxd_waits_until_the_slot_is_free() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    let mut first = setup.start().await;
    let mut second = setup.spawn();
    second.says("waiting until it is free").await;
    database.event("CLM-1", "{}").await;
    first.kill();
    second.says("Streaming ").await;
    database.event("CLM-2", "{}").await;
    database.all_confirmed().await;
    let records = topic::read_all(
        &database.services.kafka,
        &format!("{}.claim.events", database.name),
    );
    let keys: std::collections::BTreeSet<String> =
        records.iter().map(|record| record.key_text()).collect();
    assert_eq!(keys.into_iter().collect::<Vec<_>>(), ["CLM-1", "CLM-2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn autocreate_modes_mean_what_they_mean_in_debezium() {
    // disabled: never made.
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("publication.autocreate.mode", "disabled");
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("CREATE PUBLICATION"), "{said}");
    assert_eq!(publication(&database).await, None);

    // One for all tables is used as it is, in every mode.
    database
        .execute(&format!(
            "CREATE PUBLICATION {} FOR ALL TABLES",
            database.name
        ))
        .await;
    for mode in ["disabled", "all_tables", "filtered"] {
        setup.set("publication.autocreate.mode", mode);
        assert_eq!(setup.start().await.stop().await, 0);
        assert_eq!(
            publication(&database).await.as_deref(),
            Some("t t t t t"),
            "{mode}"
        );
    }

    // filtered: what lacks is added before there is a slot, and nothing is taken away, which
    // may be another connector's.
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    database
        .execute(&format!(
            "CREATE TABLE other (n int PRIMARY KEY); CREATE PUBLICATION {} FOR TABLE other",
            database.name
        ))
        .await;
    drop(setup.start().await);
    let tables = database
        .ask(&format!(
            "SELECT string_agg(tablename, ',' ORDER BY tablename) FROM pg_publication_tables WHERE pubname = '{}'",
            database.name
        ))
        .await;
    assert_eq!(tables.as_deref(), Some("other,outbox"));
}
