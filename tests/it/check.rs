//! `outboxd check` names everything that is wrong at once, each with what mends it, and changes
//! nothing.

use crate::support::database::TestDatabase;
use crate::support::outboxd::{Said, Setup};
use crate::support::services::{OwnPostgres, Services, postgres_version};
use crate::support::topic;

fn check(setup: &Setup) -> Said {
    setup.tell("check", &[])
}

/// A role of the test's own, and the connector set to it.
async fn with_role(database: &TestDatabase, attributes: &str) -> (Setup, String) {
    let role = format!("r_{}", uuid::Uuid::new_v4().simple());
    database
        .execute(&format!("CREATE ROLE {role} {attributes} PASSWORD 'pw'"))
        .await;
    let mut setup = Setup::of(database);
    setup.set("database.user", &role);
    setup.set("database.password", "pw");
    (setup, role)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_wrong_and_nothing_is_made() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let said = check(&Setup::of(&database));
    said.expect(
        0,
        &[
            "ok: wal_level is logical",
            "does not exist; `run` makes it at its first start",
            "ok: Table public.outbox has every column",
            "ok: Kafka answers: 127.0.0.1:",
            "errors: 0, to wait for: 0,",
        ],
    );
    assert_eq!(database.slot("slot_name").await, None);
    let publications = database.ask("SELECT count(*)::text FROM pg_publication");
    assert_eq!(publications.await.as_deref(), Some("0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_missing_right_is_named_with_its_grant() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    database
        .execute("REVOKE USAGE ON SCHEMA public FROM PUBLIC")
        .await;
    let (setup, role) = with_role(&database, "LOGIN").await;
    check(&setup).expect(
        3,
        &[
            &format!(r#"ALTER ROLE "{role}" REPLICATION;"#),
            &format!(r#"GRANT USAGE ON SCHEMA "public" TO "{role}";"#),
            &format!(r#"GRANT SELECT ON "public"."outbox" TO "{role}";"#),
            &format!(
                r#"GRANT CREATE ON DATABASE "{}" TO "{role}";"#,
                database.name
            ),
            &format!(r#"ALTER TABLE "public"."outbox" OWNER TO "{role}";"#),
        ],
    );
    database
        .execute(&format!(
            "REVOKE CONNECT ON DATABASE {} FROM PUBLIC",
            database.name
        ))
        .await;
    check(&setup).expect(
        3,
        &[
            &format!(
                r#"GRANT CONNECT ON DATABASE "{}" TO "{role}";"#,
                database.name
            ),
            "ok: Kafka answers",
        ],
    );
    database
        .execute(&format!("ALTER ROLE {role} NOLOGIN"))
        .await;
    check(&setup).expect(3, &[&format!(r#"ALTER ROLE "{role}" LOGIN;"#)]);
    database
        .execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn login_replication_connect_and_select_are_enough_with_a_publication_made_beforehand() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let (setup, role) = with_role(&database, "LOGIN REPLICATION").await;
    let name = &database.name;
    database
        .execute(&format!(
            "REVOKE CONNECT ON DATABASE {name} FROM PUBLIC; GRANT CONNECT ON DATABASE {name} TO {role};
             GRANT SELECT ON outbox TO {role};
             CREATE PUBLICATION {name} FOR TABLE outbox WITH (publish = 'insert, update')"
        ))
        .await;
    check(&setup).expect(0, &["has the rights it needs"]);
    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let topic = format!("{name}.claim.events");
    assert_eq!(topic::count(&database.services.kafka, &topic), 1);
    check(&setup).expect(
        0,
        &[
            "is read by the server process",
            "application outboxd",
            &topic,
        ],
    );
    assert_eq!(outboxd.stop().await, 0);
    database
        .execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_cannot_serve_is_named_with_the_reason() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    let name = &database.name;
    let other = TestDatabase::empty(Services::shared()).await;
    let drop_slot = format!("SELECT pg_drop_replication_slot('{name}')");
    for (session, creation, reason) in [
        (
            &database,
            "pg_create_physical_replication_slot('NAME')",
            "physical",
        ),
        (
            &database,
            "pg_create_logical_replication_slot('NAME', 'test_decoding')",
            "uses the plugin test_decoding",
        ),
        (
            &database,
            "pg_create_logical_replication_slot('NAME', 'pgoutput', false, true)",
            "two_phase",
        ),
        (
            &other,
            "pg_create_logical_replication_slot('NAME', 'pgoutput')",
            &format!("belongs to database {}", other.name),
        ),
    ] {
        session
            .execute(&format!("SELECT {}", creation.replace("NAME", name)))
            .await;
        check(&setup).expect(3, &[name, reason]);
        session.execute(&drop_slot).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_that_withholds_events_is_named_with_what_mends_it() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("publication.autocreate.mode", "disabled");
    let name = &database.name;
    check(&setup).expect(3, &[&format!(r#"CREATE PUBLICATION "{name}" FOR TABLE"#)]);
    database
        .execute("CREATE TABLE other (n int PRIMARY KEY)")
        .await;
    let version: u32 = database
        .ask("SELECT current_setting('server_version_num')")
        .await
        .unwrap()
        .parse()
        .unwrap();
    for (since, definition, code, words) in [
        (0, "FOR TABLE other", 3, "is without table public.outbox"),
        (
            0,
            "FOR TABLE outbox WITH (publish = 'delete')",
            3,
            "does not publish inserts",
        ),
        (
            150_000,
            "FOR TABLE outbox (id, aggregate_type, aggregate_id, type)",
            3,
            "'payload' of table public.outbox, which table.field.event.payload names, is not in the column list",
        ),
        (
            150_000,
            "FOR TABLE outbox WHERE (aggregate_type = 'x') WITH (publish = 'insert')",
            0,
            "only rows WHERE",
        ),
        (
            0,
            "FOR TABLE outbox",
            0,
            "publishes the inserts of every outbox table",
        ),
    ] {
        if version >= since {
            database
                .execute(&format!("CREATE PUBLICATION {name} {definition}"))
                .await;
            check(&setup).expect(code, &[words]);
            database.execute(&format!("DROP PUBLICATION {name}")).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_that_may_be_younger_than_the_slot_is_told() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    let name = &database.name;
    database
        .execute(&format!(
            "SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')"
        ))
        .await;
    check(&setup).expect(3, &["younger than the slot's position"]);
    database
        .execute(&format!("CREATE PUBLICATION {name} FOR TABLE outbox"))
        .await;
    check(&setup).expect(
        0,
        &["warning: Publication", "perhaps made or changed after"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_does_not_fit_is_told_with_all_its_columns() {
    let database = TestDatabase::empty(Services::shared()).await;
    let setup = Setup::of(&database);
    check(&setup).expect(3, &["No table", "outboxd setup"]);
    database
        .execute("CREATE TABLE outbox (id money, aggregate_id text, payload jsonb)")
        .await;
    check(&setup).expect(
        3,
        &[
            "no column 'aggregate_type', which route.by.field names",
            "no column 'type', which table.fields.additional.placement names",
            "has no primary key",
        ],
    );
    database
        .execute("ALTER TABLE outbox ADD aggregate_type text, ADD type money")
        .await;
    check(&setup).expect(3, &["its column id", "its column type"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_the_database_computes_is_not_in_the_stream() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    database
        .execute(
            "ALTER TABLE outbox DROP payload,
                 ADD payload text GENERATED ALWAYS AS ('{' || aggregate_id || '}') STORED",
        )
        .await;
    let words = [
        "Column 'payload' of table public.outbox",
        "is a generated column",
    ];
    let setup = Setup::of(&database);
    check(&setup).expect(3, &words);
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains(words[1]), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partitioned_outbox_has_to_be_published_as_one_table() {
    let database = TestDatabase::empty(Services::shared()).await;
    database
        .execute(
            "CREATE TABLE outbox (id uuid, aggregate_type text, aggregate_id text, type text, payload jsonb, n int,
                 PRIMARY KEY (id, n)) PARTITION BY RANGE (n);
             CREATE TABLE outbox_1 PARTITION OF outbox FOR VALUES FROM (0) TO (10)",
        )
        .await;
    let setup = Setup::of(&database);
    let name = &database.name;
    // One that `run` makes is made so.
    check(&setup).expect(0, &["ok: Table public.outbox has every column"]);
    database
        .execute(&format!("CREATE PUBLICATION {name} FOR TABLE outbox"))
        .await;
    check(&setup).expect(
        3,
        &[
            "public.outbox_1",
            "ALTER PUBLICATION",
            "publish_via_partition_root = true",
        ],
    );
    database
        .execute(&format!(
            "ALTER PUBLICATION {name} SET (publish_via_partition_root = true)"
        ))
        .await;
    check(&setup).expect(0, &["ok: Table public.outbox has every column"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_end_that_is_down_keeps_nothing_of_the_other_back() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    // Nobody listens on port 1.
    setup.arguments = vec![
        "--set".to_owned(),
        "bootstrap.servers=127.0.0.1:1".to_owned(),
    ];
    check(&setup).expect(
        1,
        &[
            "not now: Kafka cannot be reached",
            "bootstrap.servers",
            "ok: wal_level is logical",
        ],
    );
    setup.set("database.port", "1");
    setup.set("database.password", "S3cr3t");
    let said = check(&setup);
    said.expect(
        1,
        &[
            "not now: The database cannot be used",
            "not now: Kafka cannot",
        ],
    );
    assert!(!said.to_string().contains("S3cr3t"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kafka_s_refusals_have_names() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("producer.override.security.protocol", "SSL");
    check(&setup).expect(1, &["not now: TLS with Kafka failed"]);
    setup
        .connector
        .remove("producer.override.security.protocol");
    setup.arguments = vec![
        "--set".to_owned(),
        "bootstrap.servers=no-such-host.invalid:9092".to_owned(),
    ];
    check(&setup).expect(
        1,
        &[
            "not now: A Kafka broker's host name is unknown",
            "no-such-host",
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_logins_are_told_apart() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("database.dbname", "no_such_database");
    check(&setup).expect(3, &[r#"CREATE DATABASE "no_such_database";"#]);
    setup.set("database.dbname", &database.name);
    setup.set("database.password", "S3cr3t-wrong");
    let said = check(&setup);
    said.expect(3, &["database.password", "outboxd setup"]);
    assert!(!said.to_string().contains("S3cr3t"), "{said}");
    setup.set("slot.name", "My-Slot");
    assert_eq!(check(&setup).code, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_settings_are_judged() {
    let version = postgres_version();
    let mut settings = vec![
        "wal_level=replica",
        "max_replication_slots=1",
        "max_slot_wal_keep_size=-1",
        "wal_sender_timeout=0",
        "synchronous_standby_names=*",
        // Else the test's own commits would wait.
        "synchronous_commit=local",
    ];
    // It came with 18.
    if version >= 18 {
        settings.push("idle_replication_slot_timeout=60");
    }
    let postgres = OwnPostgres::start_with(&settings);
    let database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    database
        .execute("SELECT pg_create_physical_replication_slot('taken')")
        .await;
    let said = check(&Setup::of(&database));
    said.expect(
        3,
        &[
            &format!("ok: PostgreSQL {version}"),
            "error: wal_level is replica",
            "ALTER SYSTEM SET wal_level = 'logical'",
            "max_replication_slots=1",
            "warning: max_slot_wal_keep_size is -1",
            "warning: wal_sender_timeout is 0",
            "commits of the whole database would wait for the broker",
        ],
    );
    if version >= 18 {
        said.expect(3, &["warning: idle_replication_slot_timeout is"]);
    }
    database
        .execute("SELECT pg_drop_replication_slot('taken')")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_slot_is_told_with_the_size_of_the_gap() {
    let postgres = OwnPostgres::start_with(&["max_slot_wal_keep_size=1MB"]);
    let database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    let setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    assert_eq!(outboxd.stop().await, 0);
    database.event("CLM-1", "{}").await;
    database
        .execute("CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 60000)")
        .await;
    database.execute("SELECT pg_switch_wal()").await;
    database.execute("CHECKPOINT").await;
    check(&setup).expect(
        3,
        &[
            &format!("Replication slot {} is lost", database.name),
            "It had confirmed up to",
            "bytes may be missing",
            "pg_drop_replication_slot",
        ],
    );
    setup
        .tell("status", &[])
        .expect(1, &["wal_status      lost", "is lost"]);
}
