//! `database.sslmode`: encrypted when asked for, and the server's identity checked when asked for.

use std::process::Command;

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::{OwnPostgres, Services};

/// Whether each of outboxd's sessions on the server is encrypted.
async fn encrypted(database: &TestDatabase) -> Option<String> {
    database
        .ask(&format!(
            "SELECT string_agg(DISTINCT ssl::text, ',') FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
             WHERE application_name = 'outboxd' AND datname = '{}'",
            database.name
        ))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_replication_session_is_encrypted_as_asked() {
    for (mode, expected) in [
        ("require", "true"),
        ("prefer", "true"),
        ("allow", "false"),
        ("disable", "false"),
    ] {
        let database = TestDatabase::with_outbox(Services::shared()).await;
        let mut setup = Setup::of(&database);
        setup.set("database.sslmode", mode);
        let _outboxd = setup.start().await;
        assert_eq!(
            encrypted(&database).await.as_deref(),
            Some(expected),
            "{mode}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_full_takes_the_right_authority_and_no_other() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let authority = database.services.pg_ca.clone();
    let mut setup = Setup::of(&database);
    setup.set("database.sslmode", "verify-full");
    setup.set("database.sslrootcert", authority.to_str().unwrap());
    let mut outboxd = setup.start().await;
    assert_eq!(outboxd.stop().await, 0);

    setup.set(
        "database.sslrootcert",
        authority.with_file_name("other-ca.pem").to_str().unwrap(),
    );
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("database.sslrootcert"), "{said}");
}

/// With pg_hba.conf letting in one kind of connection only, both sessions have to be of it.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_insists_on_decides_where_the_mode_leaves_it_open() {
    let postgres = OwnPostgres::start();
    let database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    database
        .execute("CREATE ROLE relay SUPERUSER LOGIN PASSWORD 'relay'")
        .await;
    let mut setup = Setup::of(&database);
    setup.set("database.user", "relay");
    setup.set("database.password", "relay");
    for (refused, mode, expected) in [
        ("hostnossl", "allow", Some("true")),
        ("hostnossl", "require", Some("true")),
        ("hostnossl", "disable", None),
        ("hostssl", "prefer", Some("false")),
        ("hostssl", "require", None),
    ] {
        postgres
            .hba(&[&format!("{refused} all relay all reject")])
            .await;
        setup.set("database.sslmode", mode);
        if expected.is_some() {
            let mut outboxd = setup.start().await;
            assert_eq!(encrypted(&database).await.as_deref(), expected, "{mode}");
            assert_eq!(outboxd.stop().await, 0);
        } else {
            let (code, said) = setup.fails();
            assert_eq!(code, 3, "{said}");
            assert!(said.contains("28000"), "{said}");
        }
    }
}

/// The server's certificate is for localhost and 127.0.0.1.
#[tokio::test(flavor = "multi_thread")]
async fn verify_ca_and_require_with_an_authority_leave_the_name_alone() {
    let postgres = OwnPostgres::start_with(&["listen_addresses=*"]);
    let database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    let certificates = postgres.certificates();
    let authority = |name: &str| certificates.join(name).to_str().unwrap().to_owned();
    let mut setup = Setup::of(&database);
    setup.set("database.hostname", "127.0.0.2");
    for mode in ["verify-ca", "require"] {
        setup.set("database.sslmode", mode);
        setup.set("database.sslrootcert", &authority("ca.pem"));
        let mut outboxd = setup.start().await;
        assert_eq!(outboxd.stop().await, 0);
        setup.set("database.sslrootcert", &authority("other-ca.pem"));
        let (code, said) = setup.fails();
        assert_eq!(code, 3, "{said}");
        assert!(said.contains("UnknownIssuer"), "{said}");
    }
    setup.set("database.sslmode", "verify-full");
    setup.set("database.sslrootcert", &authority("ca.pem"));
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("not valid for name \"127.0.0.2\""), "{said}");
}

/// Made as PostgreSQL's documentation makes one: no authority above it, and one itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_self_signed_certificate_is_trusted_by_itself() {
    let postgres = OwnPostgres::start_with(&["listen_addresses=*"]);
    let database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    let certificate = postgres.certificates().join("server.pem");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-days", "30", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-key"])
        .arg(certificate.with_file_name("server.key"))
        .arg("-out")
        .arg(&certificate)
        .output()
        .expect("openssl runs");
    assert!(made.status.success(), "{made:?}");
    // Reads the certificate again, too.
    postgres.hba(&[]).await;
    let mut setup = Setup::of(&database);
    setup.set("database.sslmode", "verify-full");
    setup.set("database.sslrootcert", certificate.to_str().unwrap());
    let mut outboxd = setup.start().await;
    assert_eq!(outboxd.stop().await, 0);
    setup.set("database.hostname", "127.0.0.2");
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("not valid for name"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn system_trusts_the_authorities_of_the_machine_and_checks_everything() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.connector.remove("database.sslmode");
    setup.set("database.sslrootcert", "system");
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("UnknownIssuer"), "{said}");

    // Where OpenSSL, too, looks for them instead.
    let authority = database.services.pg_ca.to_str().unwrap().to_owned();
    setup
        .environment
        .push(("SSL_CERT_FILE".to_owned(), authority));
    let _outboxd = setup.start().await;
    assert_eq!(encrypted(&database).await.as_deref(), Some("true"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_refused_without_showing_it() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("database.password", "S3cr3t-wrong");
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("database.password"), "{said}");
    assert!(!said.contains("S3cr3t"), "{said}");
}
