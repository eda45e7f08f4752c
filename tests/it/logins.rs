//! Login methods: what the server's pg_hba.conf can ask for, and passwords that change.

use std::path::Path;
use std::process::Command;

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::services::{OwnPostgres, Services, scratch};
use crate::support::topic;

async fn database_on(postgres: &OwnPostgres) -> TestDatabase {
    TestDatabase::with_outbox(Services::shared().with_postgres(postgres)).await
}

/// The exercise's connector with another role.
fn setup_for(database: &TestDatabase, role: &str, password: &str) -> Setup {
    let mut setup = Setup::of(database);
    setup.set("database.user", role);
    setup.set("database.password", password);
    setup
}

async fn starts(setup: &Setup) {
    let mut outboxd = setup.start().await;
    assert_eq!(outboxd.stop().await, 0);
}

fn is_refused(setup: &Setup, reason: &str) {
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains(reason), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn md5_works_and_a_clear_password_is_sent_over_tls_only() {
    let postgres = OwnPostgres::start();
    let database = database_on(&postgres).await;
    database
        .execute(
            "SET password_encryption = 'md5';
             CREATE ROLE old SUPERUSER LOGIN PASSWORD 'p@s:s/w%41#?''\"\\ é';
             CREATE ROLE clear SUPERUSER LOGIN PASSWORD 'S3cr3t-clear'",
        )
        .await;
    postgres
        .hba(&["host all old all md5", "host all clear all password"])
        .await;
    let mut setup = setup_for(&database, "old", "p@s:s/w%41#?'\"\\ é");
    for mode in ["require", "disable"] {
        setup.set("database.sslmode", mode);
        starts(&setup).await;
    }
    setup.set("database.password", "S3cr3t-wrong");
    is_refused(&setup, "28P01");

    let mut setup = setup_for(&database, "clear", "S3cr3t-clear");
    starts(&setup).await;
    setup.set("database.sslmode", "disable");
    is_refused(&setup, "it was not sent");
    assert!(!setup.fails().1.contains("S3cr3t"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_is_login_enough() {
    let postgres = OwnPostgres::start();
    let database = database_on(&postgres).await;
    database.execute("CREATE ROLE client SUPERUSER LOGIN").await;
    postgres.hba(&["hostssl all client all cert"]).await;
    let mut setup = setup_for(&database, "client", "");
    setup.connector.remove("database.password");
    is_refused(&setup, "valid client certificate");

    let certificates = postgres.certificates();
    let pem_key = certificates.join("client.key");
    setup.set(
        "database.sslcert",
        certificates.join("client.pem").to_str().unwrap(),
    );
    let folder = scratch("keys");
    let convert = |arguments: &[&str], name: &str| {
        let target = folder.join(name);
        openssl(&pem_key, arguments, &target);
        target.to_str().unwrap().to_owned()
    };
    let pkcs8_der = ["pkcs8", "-topk8", "-nocrypt", "-outform", "DER"];
    for key in [
        pem_key.to_str().unwrap().to_owned(),
        convert(&["ec"], "sec1.pem"),
        convert(&pkcs8_der, "client.pk8"),
    ] {
        setup.set("database.sslkey", &key);
        starts(&setup).await;
    }
    let encrypted = ["pkcs8", "-topk8", "-passout", "pass:S3cr3t"];
    setup.set("database.sslkey", &convert(&encrypted, "encrypted.pem"));
    is_refused(&setup, "openssl pkey -in");
    setup.set(
        "database.sslkey",
        certificates.join("server.key").to_str().unwrap(),
    );
    is_refused(&setup, "cannot be used together");
}

fn openssl(key: &Path, arguments: &[&str], target: &Path) {
    let output = Command::new("openssl")
        .args(arguments)
        .arg("-in")
        .arg(key)
        .arg("-out")
        .arg(target)
        .output()
        .expect("openssl runs");
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_is_rotated_is_used_without_a_restart() {
    let postgres = OwnPostgres::start();
    let database = database_on(&postgres).await;
    let folder = scratch("secrets");
    let file = folder.join("password");
    let rotate = async |password: &str| {
        database
            .execute(&format!("ALTER ROLE relay PASSWORD '{password}'"))
            .await;
        std::fs::write(&file, password).unwrap();
    };
    database.execute("CREATE ROLE relay SUPERUSER LOGIN").await;
    rotate("S3cr3t-1").await;
    let setup = setup_for(
        &database,
        "relay",
        &format!("${{dir:{}:password}}", folder.display()),
    );
    let mut outboxd = setup.start().await;
    let end_sessions =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'relay'";

    rotate("S3cr3t-2").await;
    database.execute(end_sessions).await;
    let again = async |times: usize| {
        eventually("it streams again", async || {
            (outboxd.log().matches("Streaming ").count() > times).then_some(())
        })
        .await;
    };
    again(1).await;

    // For a moment the file is not there.
    std::fs::remove_file(&file).unwrap();
    database.execute(end_sessions).await;
    eventually("it says which file is missing", async || {
        let log = outboxd.log();
        let line = log
            .lines()
            .find(|line| line.contains("database.password"))?;
        line.contains(file.to_str().unwrap()).then_some(())
    })
    .await;
    rotate("S3cr3t-3").await;
    again(2).await;

    let id = database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let topic = format!("{}.claim.events", database.name);
    let records = topic::read_all(&database.services.kafka, &topic);
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].id(), id.to_string());
    assert!(!outboxd.log().contains("S3cr3t"));
    assert_eq!(outboxd.stop().await, 0);
}
