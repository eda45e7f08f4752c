use super::{foundations, outgrow_the_slot, slot_is_lost};
use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::services::{OwnPostgres, Services};

/// After `spoil` (with the database's, slot's and publication's name for `$N`) `run` must end
/// with code 3 and these words, and leave everything as it is.
async fn is_refused(spoil: &[&str], settings: &[(&str, &str)], words: &[&str]) {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    for (key, value) in settings {
        setup.set(key, value);
    }
    for sql in spoil {
        database.execute(&sql.replace("$N", &database.name)).await;
    }
    refuses(&database, &setup, words).await;
}

async fn refuses(database: &TestDatabase, setup: &Setup, words: &[&str]) {
    let before = foundations(database).await;
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    for word in words {
        let word = word.replace("$N", &database.name);
        assert!(said.contains(&word), "{word} is missing in {said}");
    }
    assert_eq!(foundations(database).await, before);
}

const SLOT: &str = "SELECT pg_create_logical_replication_slot('$N', 'pgoutput')";

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_of_another_kind_is_refused() {
    is_refused(
        &["SELECT pg_create_physical_replication_slot('$N')"],
        &[],
        &["slot $N is a physical one", "slot.name"],
    )
    .await;
    is_refused(
        &["SELECT pg_create_logical_replication_slot('$N', 'test_decoding')"],
        &[],
        &["slot $N uses the plugin test_decoding"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_of_another_database_is_refused() {
    let other = TestDatabase::empty(Services::shared()).await;
    let database = TestDatabase::with_outbox(Services::shared()).await;
    other.execute(&SLOT.replace("$N", &other.name)).await;
    let mut setup = Setup::of(&database);
    setup.set("slot.name", &other.name);
    let belongs = format!("belongs to database {}", other.name);
    refuses(&database, &setup, &[&belongs]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_with_prepared_transactions_is_refused() {
    is_refused(
        &[
            "CREATE PUBLICATION $N FOR TABLE outbox",
            "SELECT pg_create_logical_replication_slot('$N', 'pgoutput', false, true)",
        ],
        &[],
        &[
            "two_phase is on",
            "PREPARE TRANSACTION",
            "pg_drop_replication_slot('$N')",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_that_is_missing_beside_a_slot_is_not_made() {
    for mode in ["filtered", "disabled", "all_tables"] {
        is_refused(
            &[SLOT],
            &[("publication.autocreate.mode", mode)],
            &["Publication $N does not exist, although replication slot $N does"],
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_that_withholds_events_is_refused() {
    for mode in ["filtered", "disabled"] {
        is_refused(
            &[
                "CREATE TABLE other (n int); CREATE PUBLICATION $N FOR TABLE other",
                SLOT,
            ],
            &[("publication.autocreate.mode", mode)],
            &[
                "without table public.outbox",
                r#"ADD TABLE "public"."outbox""#,
            ],
        )
        .await;
    }
    is_refused(
        &[
            "CREATE PUBLICATION $N FOR TABLE outbox WITH (publish = 'update, delete')",
            SLOT,
        ],
        &[],
        &[
            "does not publish inserts",
            "SET (publish = 'insert, update')",
        ],
    )
    .await;
    is_refused(
        &[
            "CREATE PUBLICATION $N FOR TABLE outbox; ALTER TABLE outbox RENAME TO outbox_old",
            SLOT,
        ],
        &[],
        &["Publication $N publishes public.outbox_old: was the outbox renamed?"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_wrong_is_said_at_once() {
    is_refused(
        &[
            "CREATE PUBLICATION $N WITH (publish = 'delete')",
            "SELECT pg_create_logical_replication_slot('$N', 'test_decoding')",
        ],
        &[],
        &[
            "test_decoding",
            "without table public.outbox",
            "does not publish inserts",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_was_in_use_is_not_made_anew_unless_when_needed() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    // What others wrote in the publication's comment stays.
    database
        .execute(&format!(
            "CREATE PUBLICATION {0} FOR TABLE outbox; COMMENT ON PUBLICATION {0} IS 'of the claims team'",
            database.name
        ))
        .await;
    assert_eq!(setup.start().await.stop().await, 0);
    let comment = database.ask("SELECT obj_description(oid) FROM pg_publication");
    assert_eq!(
        comment.await,
        Some(format!(
            "of the claims team; outboxd slot={}",
            database.name
        ))
    );
    eventually("the slot is free and dropped", async || {
        let drop_slot = format!("SELECT pg_drop_replication_slot('{}')", database.name);
        database.sql.batch_execute(&drop_slot).await.ok()
    })
    .await;
    for mode in ["no_data", "initial"] {
        setup.set("snapshot.mode", mode);
        refuses(
            &database,
            &setup,
            &["slot $N is missing, although it was in use"],
        )
        .await;
    }
    setup.set("snapshot.mode", "when_needed");
    let mut outboxd = setup.start().await;
    assert!(
        outboxd.log().contains("although it was in use"),
        "{}",
        outboxd.log()
    );
    assert_eq!(outboxd.stop().await, 0);
}

/// BR-018.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_slot_is_refused_with_the_gap_and_not_made_anew() {
    let postgres = OwnPostgres::start_with(&["max_slot_wal_keep_size=1MB"]);
    let database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    let mut setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    assert_eq!(outboxd.stop().await, 0);
    database.event("CLM-2", "{}").await;
    outgrow_the_slot(&database).await;
    eventually("the slot is lost", async || {
        (database.slot("wal_status").await? == "lost").then_some(())
    })
    .await;
    setup.set("snapshot.mode", "initial");
    refuses(
        &database,
        &setup,
        &[
            slot_is_lost(),
            "max_slot_wal_keep_size",
            "bytes may be missing",
            "pg_drop_replication_slot('$N')",
        ],
    )
    .await;
}

/// BR-028: up to 17 the server refuses, from 18 on it leaves the rows out with a warning.
#[tokio::test(flavor = "multi_thread")]
async fn a_publication_made_after_the_slot_is_noticed() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let name = &database.name;
    database.execute(&SLOT.replace("$N", name)).await;
    database.event("CLM-1", "{}").await;
    database
        .execute(&format!("CREATE PUBLICATION {name} FOR TABLE outbox"))
        .await;
    let before = foundations(&database).await;
    let mut outboxd = Setup::of(&database).spawn();
    outboxd.says("Failed.").await;
    outboxd
        .says("which was made, or made again, after it")
        .await;
    let (code, said) = outboxd.get("/health/ready").await;
    assert_eq!(code, 503);
    assert!(said.contains("pg_replication_slot_advance"), "{said}");
    assert_eq!(outboxd.get("/health/live").await.0, 200);
    let fatal = outboxd.metric("outboxd_errors_total,class=\"fatal\"").await;
    assert_eq!(fatal, Some(1.0));
    assert_eq!(foundations(&database).await, before);

    // What it says mends it, without a restart.
    eventually("the slot is free and passed on", async || {
        let advance = format!("SELECT pg_replication_slot_advance('{name}', pg_current_wal_lsn())");
        database.sql.batch_execute(&advance).await.ok()
    })
    .await;
    database.event("CLM-2", "{}").await;
    database.all_confirmed().await;
    assert_eq!(outboxd.get("/health/ready").await.0, 200);
}

/// BR-022: such a slot has no position yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_still_being_made_is_waited_for() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let name = &database.name;
    database
        .execute(&format!("CREATE PUBLICATION {name} FOR TABLE outbox"))
        .await;
    // Whoever makes a slot waits for the transactions that are open.
    let open = database.session().await;
    open.batch_execute("BEGIN; SELECT pg_current_xact_id()")
        .await
        .unwrap();
    let maker = database.session().await;
    let making = tokio::spawn({
        let sql = SLOT.replace("$N", name);
        async move { maker.batch_execute(&sql).await }
    });
    eventually("it is being made", async || {
        database.slot("slot_name").await
    })
    .await;
    assert_eq!(database.slot("confirmed_flush_lsn").await, None);
    let mut outboxd = Setup::of(&database).spawn();
    outboxd.says("is not ready").await;
    outboxd.ready_becomes(503).await;
    open.batch_execute("COMMIT").await.unwrap();
    making.await.unwrap().unwrap();
    outboxd.says("Streaming ").await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    outboxd.ready_becomes(200).await;
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

/// BR-028, in the other order: events are written, and the publication is made anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_publication_made_anew_while_outboxd_was_down_is_noticed() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let name = &database.name;
    let setup = Setup::of(&database);
    assert_eq!(setup.start().await.stop().await, 0);
    database.event("CLM-1", "{}").await;
    database.execute(&format!("DROP PUBLICATION {name}")).await;
    database.event("CLM-2", "{}").await;
    database
        .execute(&format!("CREATE PUBLICATION {name} FOR TABLE outbox"))
        .await;
    let mut outboxd = setup.spawn();
    outboxd
        .says("which was made, or made again, after it")
        .await;
    let said = outboxd.ready_becomes(503).await;
    assert!(said.contains("pg_replication_slot_advance"), "{said}");
    assert!(!database.confirmed(&database.wal_end().await).await);
}

/// BR-017 has the wait for another outboxd; this is somebody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_held_by_another_program_is_waited_for() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let name = &database.name;
    let setup = Setup::of(&database);
    assert_eq!(setup.start().await.stop().await, 0);
    let mut holder = std::process::Command::new("pg_recvlogical")
        .args([
            "-h",
            "localhost",
            "-p",
            &database.services.pg_port.to_string(),
        ])
        .args([
            "-U", "postgres", "-d", name, "-S", name, "--start", "-f", "-",
        ])
        .args(["-o", "proto_version=1", "-o"])
        .arg(format!("publication_names={name}"))
        .env("PGPASSWORD", "postgres")
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("pg_recvlogical starts");
    eventually("it holds the slot", async || {
        (database.slot("active").await? == "true").then_some(())
    })
    .await;
    let before = foundations(&database).await;
    let mut outboxd = setup.spawn();
    outboxd.says("application pg_recvlogical").await;
    let (code, said) = outboxd.get("/health/ready").await;
    assert_eq!(code, 503);
    assert!(said.contains("pg_terminate_backend("), "{said}");
    assert!(outboxd.metric("outboxd_errors_total,class=\"retry\"").await > Some(0.0));
    assert_eq!(foundations(&database).await, before);
    holder.kill().unwrap();
    holder.wait().unwrap();
    outboxd.says("Streaming ").await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
}
