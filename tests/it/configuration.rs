//! Configuration errors end with code 2, all of them in one message, and show no secret.

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::{Services, scratch};

#[tokio::test(flavor = "multi_thread")]
async fn every_mistake_is_reported_at_once_with_its_place_and_its_remedy() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("slot.name", "My-Slot");
    setup.set("transforms.outbox.route.topic.replacment", "x");
    setup.set("database.port", "five");
    setup.set("database.password", "${env:OUTBOXD_TEST_NO_SUCH_VARIABLE}");
    let (code, said) = setup.fails();
    assert_eq!(code, 2, "{said}");
    for expected in [
        "connector.json:",
        "slot.name",
        "transforms.outbox.route.topic.replacment",
        "route.topic.replacement",
        "database.port",
        "OUTBOXD_TEST_NO_SUCH_VARIABLE",
    ] {
        assert!(said.contains(expected), "{expected} is missing in:\n{said}");
    }
}

/// `run` ends with 2, naming one problem with these words.
#[track_caller]
fn is_one_problem(setup: &Setup, words: &[&str]) {
    let (code, said) = setup.fails();
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("1 problem in the configuration"), "{said}");
    for word in words {
        assert!(said.contains(word), "{word} is missing in:\n{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_key_is_refused_with_the_right_one() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    for (written, meant) in [
        ("tabel.include.list", "table.include.list"),
        ("publication.autocreate.mod", "publication.autocreate.mode"),
        ("slotname", "slot.name"),
        (
            "transforms.outbox.table.field.event.id.",
            "transforms.outbox.table.field.event.id",
        ),
        ("outboxd.htp.port", "outboxd.http.port"),
        ("producer.override.acs", "producer.override.acks"),
    ] {
        let mut setup = Setup::of(&database);
        setup.set(written, "x");
        let question = format!("{written}: there is no such key; did you mean {meant}?");
        is_one_problem(&setup, &["connector.json:1", &question]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_json_is_refused_with_the_place() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let folder = scratch("malformed");
    let mut setup = Setup::of(&database);
    for (content, words) in [
        (
            "{\n\"name\": \"x\",\n\"config\": {",
            "malformed.json:3: the JSON ends too early",
        ),
        ("{\n\"name\": \"x\"\n\"config\": {}}", "malformed.json:3"),
        ("[]", "malformed.json"),
    ] {
        let file = folder.join("malformed.json");
        std::fs::write(&file, content).unwrap();
        setup.file = Some(file);
        is_one_problem(&setup, &[words]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_that_stands_for_nothing_is_refused() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    for (placeholder, words) in [
        (
            "${env:OUTBOXD_TEST_NO_SUCH_VARIABLE}",
            "OUTBOXD_TEST_NO_SUCH_VARIABLE is not set",
        ),
        ("${file:/no/such/file:password}", "/no/such/file"),
        ("${dir:/no/such:password}", "/no/such/password"),
        ("${vault:password}", r#"no config provider "vault""#),
    ] {
        let mut setup = Setup::of(&database);
        setup.set("database.password", placeholder);
        is_one_problem(&setup, &["database.password", words]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_key_far_from_any_known_one_is_one_warning() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("my.companys.own.annotation", "S3cr3t-annotation");
    let outboxd = setup.start().await;
    let log = outboxd.log();
    assert_eq!(
        log.matches("my.companys.own.annotation").count(),
        1,
        "{log}"
    );
    assert!(!log.contains("S3cr3t-annotation"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_come_from_files_and_never_show() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let folder = scratch("secrets");
    let role = format!("r_{}", uuid::Uuid::new_v4().simple());
    // Every character that quoting or URL decoding could spoil.
    let password = "p@s:s/w%41#?'\"\\ é-S3cr3t";
    database
        .execute(&format!(
            "CREATE ROLE {role} LOGIN REPLICATION PASSWORD '{}'; ALTER TABLE outbox OWNER TO {role};
             GRANT CREATE ON DATABASE {} TO {role}",
            password.replace('\'', "''"),
            database.name
        ))
        .await;
    let escaped = password.replace('\\', "\\\\");
    std::fs::write(
        folder.join("db.properties"),
        format!("password={escaped}\n"),
    )
    .unwrap();
    let mut setup = Setup::of(&database);
    setup.set("database.user", &role);
    setup.set(
        "database.password",
        &format!(
            "${{file:{}:password}}",
            folder.join("db.properties").display()
        ),
    );
    let mut outboxd = setup.start().await;
    database
        .event("CLM-1", r#"{"card": "S3cr3t-payload"}"#)
        .await;
    database.all_confirmed().await;
    assert_eq!(outboxd.stop().await, 0);
    assert!(!outboxd.log().contains("S3cr3t"), "{}", outboxd.log());
    database
        .execute(&format!(
            "REASSIGN OWNED BY {role} TO postgres; DROP OWNED BY {role}; DROP ROLE {role}"
        ))
        .await;
}
