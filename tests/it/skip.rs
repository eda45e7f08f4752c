//! `outboxd skip` leaves out one event that can never be sent, and nothing else.

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::{Outboxd, Setup};
use crate::support::services::Services;
use crate::support::topic;

/// Goes to no topic.
const POISON: &str = "00000000-0000-0000-0000-000000000bad";

/// Two events before the one that cannot be sent, both also of its transaction's beginning and
/// end, and two behind.
async fn write(database: &TestDatabase) {
    database.event("1", "{}").await;
    database
        .execute(&format!(
            "BEGIN;
             INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', '2', 't', '{{}}');
             INSERT INTO outbox VALUES ('{POISON}', 'no topic', 'k', 't', '{{}}');
             INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', '3', 't', '{{}}');
             COMMIT;"
        ))
        .await;
    database.event("4", "{}").await;
}

fn keys(database: &TestDatabase) -> Vec<String> {
    let topic = format!("{}.claim.events", database.name);
    topic::read_all(&database.services.kafka, &topic)
        .iter()
        .map(topic::Record::key_text)
        .collect()
}

/// The position that the error about the event names.
async fn position(outboxd: &mut Outboxd) -> String {
    outboxd.says("Failed.").await;
    let log = outboxd.log();
    let (_, rest) = log
        .split_once(&format!(
            "the event {POISON} of table public.outbox, in the transaction that commits at "
        ))
        .unwrap_or_else(|| panic!("the event is not named: {log}"));
    rest.split_once(',').expect("a comma").0.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_event_is_left_out_and_the_failed_outboxd_goes_on_without_it() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    let mut outboxd = setup.start().await;
    write(&database).await;
    let lsn = position(&mut outboxd).await;
    assert!(outboxd.log().contains("outboxd skip"), "{}", outboxd.log());
    assert_eq!(keys(&database), ["1", "2"]);

    let arguments = ["--lsn", &lsn, "--id", POISON, "--reason", "a test order"];
    let said = setup.tell("skip", &arguments);
    said.expect(0, &[&format!("Skipped the event {POISON}"), &lsn]);
    let warning = format!(
        "The event {POISON} of table public.outbox, in the transaction that commits at {lsn}, is skipped and will not be sent: a test order"
    );
    assert!(said.error.contains(&warning), "{said}");
    // What precedes it in its own transaction could not be confirmed before, and comes twice.
    assert_eq!(keys(&database)[..4], ["1", "2", "2", "3"]);

    database.all_confirmed().await;
    assert_eq!(keys(&database), ["1", "2", "2", "3", "4"]);
    outboxd.ready_becomes(200).await;
    assert_eq!(
        outboxd.metric("outboxd_skipped_events_total").await,
        Some(1.0)
    );
    assert!(outboxd.log().contains("was skipped: the slot is past it"));
    let again = setup.tell("skip", &arguments);
    assert_eq!(again.code, 1, "{again}");
    assert!(again.error.contains("past the transaction"), "{again}");
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_not_skipped_and_nothing_else_is() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    let skip = |lsn: &str, id: &str| {
        let said = setup.tell("skip", &["--lsn", lsn, "--id", id, "--reason", "a test"]);
        assert_eq!(said.code, 1, "{said}");
        said.error
    };
    let said = skip("0/1", POISON);
    assert!(said.contains("does not exist"), "{said}");
    assert_eq!(database.slot("slot_name").await, None, "it makes none");

    let mut outboxd = setup.start().await;
    write(&database).await;
    let lsn = position(&mut outboxd).await;
    outboxd.kill();
    let said = skip(&lsn, "00000000-0000-0000-0000-000000000bae");
    // It stops at the event that holds everything up, which is another one.
    assert!(said.contains(&format!("the event {POISON}")), "{said}");
    let said = skip("FFFFFFFF/0", POISON);
    assert!(said.contains(&format!("the event {POISON}")), "{said}");
    assert!(!database.confirmed(&lsn).await);

    let no_reason = setup.tell("skip", &["--lsn", &lsn, "--id", POISON, "--reason", ""]);
    assert_eq!(no_reason.code, 2, "{no_reason}");

    // An event that could well be sent, if that is what is wanted.
    let said = setup.tell(
        "skip",
        &["--lsn", &lsn, "--id", POISON, "--reason", "a test"],
    );
    said.expect(0, &["Skipped the event"]);
    eventually("the rest is delivered", async || {
        database.confirmed(&lsn).await.then_some(())
    })
    .await;
}
