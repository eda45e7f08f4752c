//! `outboxd setup` prints, or runs, the SQL that a connector needs, again and again.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::Services;
use crate::support::topic;

const PASSWORD: &str = "it's \"S3cr3t\"";

/// A connector whose role does not exist yet.
fn of_a_new_role(database: &TestDatabase) -> (Setup, String) {
    let role = format!("r_{}", uuid::Uuid::new_v4().simple());
    let mut setup = Setup::of(database);
    setup.set("database.user", &role);
    setup.set("database.password", PASSWORD);
    (setup, role)
}

fn superuser(database: &TestDatabase) -> String {
    format!(
        "postgres://postgres:postgres@localhost:{}",
        database.services.pg_port
    )
}

/// Runs a script as a person would.
fn psql(database: &TestDatabase, script: &str) {
    let mut psql = Command::new("psql")
        .args([
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "localhost",
            "-U",
            "postgres",
        ])
        .args([
            "-d",
            &database.name,
            "-p",
            &database.services.pg_port.to_string(),
        ])
        .args(["-v", &format!("password={PASSWORD}")])
        .env("PGPASSWORD", "postgres")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql runs");
    let mut input = psql.stdin.take().unwrap();
    input.write_all(script.as_bytes()).unwrap();
    drop(input);
    let output = psql.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}\n{script}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// What was set up is in good order and delivers.
async fn delivers(database: &TestDatabase, setup: &Setup) {
    let said = setup.tell("check", &[]);
    said.expect(0, &["errors: 0, to wait for: 0"]);
    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    assert_eq!(outboxd.stop().await, 0);
    let topic = format!("{}.claim.events", database.name);
    assert_eq!(topic::count(&database.services.kafka, &topic), 1);
}

async fn drop_role(database: &TestDatabase, role: &str) {
    database
        .execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_script_makes_everything_and_holds_no_password() {
    let database = TestDatabase::empty(Services::shared()).await;
    let (setup, role) = of_a_new_role(&database);
    let as_superuser = superuser(&database);
    let said = setup.tell("setup", &["--as", &as_superuser]);
    said.expect(
        0,
        &["CREATE TABLE", "PASSWORD :'password'", "CREATE PUBLICATION"],
    );
    assert!(!said.to_string().contains("S3cr3t"), "{said}");
    assert_eq!(
        database.slot("slot_name").await,
        None,
        "printing makes nothing"
    );
    psql(&database, &said.output);
    delivers(&database, &setup).await;

    // As the connector's own role, which now exists, with nothing left to do.
    let said = setup.tell("setup", &[]);
    said.expect(0, &["There already: table public.outbox"]);
    assert!(
        said.output
            .lines()
            .all(|line| line.is_empty() || line.starts_with("--")),
        "{said}"
    );
    drop_role(&database, &role).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_makes_what_is_missing_and_says_what_is_there() {
    let database = TestDatabase::empty(Services::shared()).await;
    let (setup, role) = of_a_new_role(&database);
    let as_superuser = superuser(&database);
    let apply = || setup.tell("setup", &["--apply", "--as", &as_superuser]);
    let said = apply();
    said.expect(
        0,
        &[
            "done: table public.outbox",
            "done: role",
            "done: publication",
        ],
    );
    assert!(!said.output.contains("there already"), "{said}");
    assert!(!said.to_string().contains("S3cr3t"), "{said}");
    delivers(&database, &setup).await;
    let mark = database
        .ask("SELECT obj_description(oid, 'pg_publication') FROM pg_publication")
        .await;
    assert_eq!(mark, Some(format!("outboxd slot={}", database.name)));

    let said = apply();
    said.expect(
        0,
        &["there already: replication slot", "there already: role"],
    );
    assert!(!said.output.contains("done"), "{said}");

    // A slot that was in use is not made anew behind anybody's back.
    database
        .execute(&format!(
            "SELECT pg_drop_replication_slot('{}')",
            database.name
        ))
        .await;
    let said = apply();
    assert_eq!(said.code, 3, "{said}");
    assert!(said.error.contains("was in use"), "{said}");
    setup
        .tell("check", &[])
        .expect(3, &["was in use", "IS NULL;"]);
    assert_eq!(database.slot("slot_name").await, None);
    drop_role(&database, &role).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_database_everything_is_printed_and_nothing_can_be_applied() {
    let database = TestDatabase::empty(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("database.port", "1");
    setup
        .tell("setup", &[])
        .expect(0, &["could not be seen", "CREATE TABLE", "CREATE ROLE"]);
    assert_eq!(setup.tell("setup", &["--apply"]).code, 1);
    let said = setup.tell("setup", &["--as", "S3cr3t not a URL"]);
    assert!(!said.to_string().contains("S3cr3t"), "{said}");
}
