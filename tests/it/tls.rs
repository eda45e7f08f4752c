//! `database.sslmode`: encrypted when asked for, and the server's identity checked when asked for.

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::Services;

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
