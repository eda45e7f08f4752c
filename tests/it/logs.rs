//! Secrets and payloads stay where they belong, however much is logged and whatever fails.

use crate::support::database::TestDatabase;
use crate::support::outboxd::{Outboxd, Setup};
use crate::support::services::Services;

/// Stands in every secret and payload of these tests.
const MARK: &str = "S3cr3t-xyz";

/// A setup that logs everything, for a role whose password holds the mark.
async fn talkative(database: &TestDatabase) -> (Setup, String) {
    let role = format!("r_{}", uuid::Uuid::new_v4().simple());
    database
        .execute(&format!(
            "CREATE ROLE {role} LOGIN REPLICATION PASSWORD '{MARK}-pg'; ALTER TABLE outbox OWNER TO {role};
             GRANT CREATE ON DATABASE {} TO {role}",
            database.name
        ))
        .await;
    let mut setup = Setup::of(database);
    setup
        .environment
        .push(("OUTBOXD_LOG".to_owned(), "trace".to_owned()));
    setup.set("database.user", &role);
    setup.set("database.password", &format!("{MARK}-pg"));
    (setup, role)
}

async fn drop_role(database: &TestDatabase, role: &str) {
    database
        .execute(&format!(
            "REASSIGN OWNED BY {role} TO postgres; DROP OWNED BY {role}; DROP ROLE {role}"
        ))
        .await;
}

fn assert_clean(what: &str, text: &str) {
    let found = text.lines().find(|line| line.contains(MARK));
    assert_eq!(found, None, "in {what}");
}

/// Everything that a running process shows.
async fn assert_shows_nothing(outboxd: &Outboxd) {
    for path in ["/metrics", "/health/live", "/health/ready"] {
        assert_clean(path, &outboxd.get(path).await.1);
    }
    assert_clean("the log", &outboxd.log());
    assert_clean("the output", &outboxd.output());
}

/// Payload, key, header and id of an event, each with the mark.
async fn marked_event(database: &TestDatabase, aggregate_type: &str) {
    database
        .execute(&format!(
            r#"INSERT INTO outbox (id, aggregate_type, aggregate_id, type, payload)
               VALUES (gen_random_uuid(), '{aggregate_type}', '{MARK}-key', '{MARK}-header', '{{"card": "{MARK}-payload"}}')"#
        ))
        .await;
}

/// BR-112.
#[tokio::test(flavor = "multi_thread")]
async fn neither_secrets_nor_payloads_show_while_delivering_and_failing() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let (mut setup, role) = talkative(&database).await;
    let mut outboxd = setup.start().await;
    marked_event(&database, "claim").await;
    database.all_confirmed().await;
    database
        .execute(&format!(
            "UPDATE outbox SET type = '{MARK}-changed';
             SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{}'",
            database.name
        ))
        .await;
    outboxd.says("Interrupted").await;
    marked_event(&database, "claim").await;
    database.all_confirmed().await;
    assert!(outboxd.log().contains("TRACE"), "it logs everything");
    assert_shows_nothing(&outboxd).await;
    assert_eq!(outboxd.stop().await, 0);

    // A login that is refused, and a name that nobody has.
    setup.set("database.password", &format!("{MARK}-wrong"));
    let (_, said) = setup.fails();
    assert!(said.contains("password"), "{said}");
    assert_clean("a refused login", &said);
    setup.set("database.hostname", "host.invalid");
    let mut outboxd = setup.spawn();
    outboxd.says("host.invalid").await;
    assert_shows_nothing(&outboxd).await;
    drop(outboxd);
    drop_role(&database, &role).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_brokers_password_does_not_show_when_the_broker_does_not_take_it() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let (mut setup, role) = talkative(&database).await;
    setup.worker = Some(format!(
        "producer.security.protocol=SASL_PLAINTEXT\n\
         producer.sasl.mechanism=PLAIN\n\
         producer.sasl.username=relay\n\
         producer.sasl.password={MARK}-broker\n"
    ));
    let mut outboxd = setup.spawn();
    outboxd.says("The Kafka client has trouble").await;
    marked_event(&database, "claim").await;
    assert_shows_nothing(&outboxd).await;
    drop(outboxd);
    drop_role(&database, &role).await;
}

/// The error names the event by its id and says why, without what is in it.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_cannot_be_sent_is_named_without_its_content() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let (setup, role) = talkative(&database).await;
    let mut outboxd = setup.start().await;
    // No topic can have such a name, which the message may quote: routes are no secrets.
    marked_event(&database, "no topic").await;
    outboxd.says("cannot be sent").await;
    assert_clean("the log", &outboxd.log());
    drop(outboxd);
    drop_role(&database, &role).await;
}
