//! What keeps outboxd from delivering is told by one clear message: it ends with the code that
//! says who has to act, or it keeps trying without filling the log.

use crate::support::database::TestDatabase;
use crate::support::outboxd::{Outboxd, Setup, complaints};
use crate::support::proxy::{Framing, Proxy};
use crate::support::services::{OwnPostgres, Services};
use crate::support::{eventually, topic};

/// `run` ends with 3, and has one complaint, with these words.
#[track_caller]
fn is_refused(setup: &Setup, words: &[&str]) {
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    let complaints = complaints(&said);
    let [complaint] = complaints.as_slice() else {
        panic!("not one complaint: {said}");
    };
    for word in words {
        assert!(complaint.contains(word), "{word} is missing in {complaint}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_has_to_mend_ends_it_with_one_message() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let name = &database.name;
    for (key, value, words) in [
        (
            "database.password",
            "S3cr3t-wrong",
            ["28P01", "check database.user, database.password"],
        ),
        (
            "database.dbname",
            "no_such_database",
            [
                r#"database "no_such_database" does not exist"#,
                "check database.dbname",
            ],
        ),
        (
            "table.include.list",
            "public.no_such_table",
            [
                "is matched by table.include.list",
                "create the table (`outboxd setup` prints it), or mend table.include.list",
            ],
        ),
    ] {
        let mut setup = Setup::of(&database);
        setup.set(key, value);
        is_refused(&setup, &words);
        assert_eq!(database.slot("slot_name").await, None, "{key}");
    }
    database
        .execute(&format!(
            "SELECT pg_create_logical_replication_slot('{name}', 'test_decoding')"
        ))
        .await;
    is_refused(&Setup::of(&database), &[name, "test_decoding"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_logical_decoding_is_refused_with_one_message() {
    let postgres = OwnPostgres::start_with(&["wal_level=replica"]);
    let database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    is_refused(
        &Setup::of(&database),
        &["wal_level is replica", "wal_level = 'logical'"],
    );
}

/// Live, not ready with these words as the reason, and `check` says which end it is.
async fn waits(setup: &Setup, end: &str, words: &[&str]) -> Outboxd {
    let outboxd = setup.spawn();
    for word in words {
        eventually(&format!("not ready, because of '{word}'"), async || {
            let (code, said) = outboxd.get("/health/ready").await;
            (code == 503 && said.contains(word)).then_some(())
        })
        .await;
    }
    outboxd.ready_becomes(503).await;
    let other = match end {
        "The database" => "ok: Kafka answers",
        _ => "ok: wal_level is logical",
    };
    setup
        .tell("check", &[])
        .expect(1, &[&format!("not now: {end}"), other, "errors: 0"]);
    outboxd
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_be_reached_is_waited_for() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    for (key, value, words) in [
        (
            "database.hostname",
            "no-such-host.invalid",
            ["no-such-host.invalid", "looking up its address"],
        ),
        // Nobody listens on port 1.
        ("database.port", "1", ["localhost:1", "Connection refused"]),
    ] {
        let mut setup = Setup::of(&database);
        setup.set(key, value);
        let mut outboxd = waits(&setup, "The database", &words).await;
        println!("{key}={value}: {} complaints", outboxd.complaints().len());
        assert_eq!(outboxd.stop().await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_cannot_be_reached_is_waited_for() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    for (servers, end, words) in [
        (
            "no-such-host.invalid:9092",
            "A Kafka broker's host name is unknown",
            [
                "no broker answered",
                "Failed to resolve 'no-such-host.invalid:9092'",
            ],
        ),
        (
            "127.0.0.1:1",
            "Kafka cannot be reached",
            [
                "no broker answered",
                "127.0.0.1:1 failed: Connection refused",
            ],
        ),
    ] {
        let mut setup = Setup::of(&database);
        setup.arguments = vec!["--set".to_owned(), format!("bootstrap.servers={servers}")];
        setup
            .environment
            .push(("OUTBOXD_LOG".to_owned(), "info,outboxd=debug".to_owned()));
        let mut outboxd = waits(&setup, end, &words).await;
        // It is asked again and again, and said once.
        eventually("the brokers are asked five times", async || {
            (outboxd.log().matches("No broker answers").count() >= 5).then_some(())
        })
        .await;
        let complaints = outboxd.complaints();
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        for word in words {
            assert!(complaints[0].contains(word), "{complaints:?}");
        }
        assert_eq!(outboxd.stop().await, 0);
    }
}

/// BR-113.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_does_not_grow_with_the_attempts_to_reach_a_broker() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    // Resets every connection.
    let nobody = Proxy::new(Framing::Kafka).await;
    let mut setup = Setup::of(&database);
    setup.kafka_behind(&nobody);
    let mut outboxd = setup.spawn();
    outboxd.says("Not delivering").await;
    database.event("CLM-1", "{}").await;
    let (lines, attempts) = (outboxd.log().lines().count(), nobody.accepted());
    eventually("20 further attempts", async || {
        (nobody.accepted() >= attempts + 20).then_some(())
    })
    .await;
    let grown = outboxd.log().lines().count() - lines;
    println!("20 attempts to reach a broker: {grown} lines");
    assert_eq!(outboxd.complaints().len(), 1, "{:?}", outboxd.complaints());
    // What the client itself says comes once a minute, for each kind of error.
    assert!(grown <= 5, "{}", outboxd.log());

    nobody.aim(&database.services.kafka);
    database.all_confirmed().await;
    outboxd.ready_becomes(200).await;
    let topic = format!("{}.claim.events", database.name);
    assert_eq!(topic::count(&database.services.kafka, &topic), 1);
}
