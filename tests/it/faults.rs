//! Health under faults, with the settings of somebody who sets none: readiness goes red and says
//! why, liveness stays, and outboxd goes on by itself (rule R10).

use std::time::Instant;

use crate::support::database::TestDatabase;
use crate::support::outboxd::{Outboxd, Setup};
use crate::support::proxy::{Fault, Framing, Proxy};
use crate::support::services::{OwnKafka, Services};
use crate::support::topic;

/// Waits until readiness is red, mends, and waits until it is green again; what it said while
/// it was red.
async fn red_until_mended(fault: &str, outboxd: &Outboxd, mend: impl FnOnce()) -> String {
    let broken = Instant::now();
    let said = outboxd.ready_becomes(503).await;
    let red = broken.elapsed();
    mend();
    let mended = Instant::now();
    outboxd.ready_becomes(200).await;
    println!(
        "{fault}: not ready after {:.1} s, ready again after another {:.1} s; {said}",
        red.as_secs_f64(),
        mended.elapsed().as_secs_f64()
    );
    said
}

/// With an event in flight it is the event's age or the broker's silence, whichever comes first.
fn names_the_broker(said: &str) -> bool {
    said.contains("no broker answered within 3s")
        || said.contains("the broker has not acknowledged the oldest event")
}

/// The keys of the topic, in order, each event counted once.
fn keys(database: &TestDatabase, kafka: &str) -> Vec<String> {
    let topic = format!("{}.claim.events", database.name);
    let mut keys: Vec<String> = topic::read_all(kafka, &topic)
        .iter()
        .map(topic::Record::key_text)
        .collect();
    keys.dedup();
    keys
}

/// A relay that reaches PostgreSQL through a proxy, ready, with one event delivered.
async fn behind_a_proxy(database: &TestDatabase) -> (Proxy, Outboxd) {
    let target = format!("127.0.0.1:{}", database.services.pg_port);
    let proxy = Proxy::to(&target, Framing::Postgres).await;
    let mut setup = Setup::of(database);
    setup.database_behind(&proxy);
    let outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    outboxd.ready_becomes(200).await;
    (proxy, outboxd)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_connection_to_postgresql_is_noticed_and_replaced_without_any_event() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let (proxy, outboxd) = behind_a_proxy(&database).await;
    // New connections work, as after a firewall has forgotten the old ones.
    for link in proxy.links() {
        link.set(Fault::HalfOpen);
    }
    let said = red_until_mended("PostgreSQL half-open, idle", &outboxd, || ()).await;
    assert!(said.contains("PostgreSQL does not answer"), "{said}");
    assert!(
        outboxd
            .metric(r#"outboxd_errors_total,class="retry""#)
            .await
            > Some(0.0)
    );
    assert_eq!(outboxd.metric("outboxd_reconnects_total").await, Some(1.0));
    database.event("CLM-2", "{}").await;
    database.all_confirmed().await;
    assert_eq!(
        keys(&database, &database.services.kafka),
        ["CLM-1", "CLM-2"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_connection_to_postgresql_is_noticed_while_events_are_written() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let (proxy, outboxd) = behind_a_proxy(&database).await;
    // New connections, too, lead nowhere.
    proxy.set(Fault::HalfOpen);
    database.event("CLM-2", "{}").await;
    database.event("CLM-3", "{}").await;
    let said = red_until_mended("PostgreSQL half-open, with events", &outboxd, || {
        proxy.set(Fault::None);
        proxy.cut();
    })
    .await;
    assert!(said.contains("PostgreSQL does not answer"), "{said}");
    database.all_confirmed().await;
    assert_eq!(
        keys(&database, &database.services.kafka),
        ["CLM-1", "CLM-2", "CLM-3"]
    );
}

/// With `event`, one is in flight while the connection leads nowhere.
async fn half_open_to_kafka(fault: &str, event: bool) {
    let proxy = Proxy::new(Framing::Kafka).await;
    let kafka = OwnKafka::start_behind(&proxy);
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    let mut setup = Setup::of(&database);
    setup.kafka_behind(&proxy);
    let outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    outboxd.ready_becomes(200).await;
    for link in proxy.links() {
        link.set(Fault::HalfOpen);
    }
    if event {
        database.event("CLM-2", "{}").await;
    }
    let said = red_until_mended(fault, &outboxd, || ()).await;
    assert!(names_the_broker(&said), "{said}");
    if !event {
        database.event("CLM-2", "{}").await;
    }
    database.all_confirmed().await;
    assert_eq!(keys(&database, &kafka.address()), ["CLM-1", "CLM-2"]);
    // A producer that has not found the brokers again by itself for 30 s is replaced, once.
    let complaints = outboxd.complaints();
    assert!(complaints.len() <= 2, "{complaints:#?}");
    assert!(complaints[0].contains("Not delivering"), "{complaints:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_connection_to_kafka_is_noticed_and_replaced_without_any_event() {
    half_open_to_kafka("Kafka half-open, idle", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_connection_to_kafka_is_noticed_and_replaced_with_an_event_in_flight() {
    half_open_to_kafka("Kafka half-open, an event in flight", true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halted_broker_is_noticed_before_during_and_after_events() {
    let kafka = OwnKafka::start();
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    let mut setup = Setup::of(&database);
    setup
        .environment
        .push(("OUTBOXD_LOG".to_owned(), "info,outboxd=debug".to_owned()));
    let mut outboxd = setup.start().await;
    // Connected, though nothing was ever sent.
    outboxd.says("A broker answers").await;
    kafka.halt();
    let said = red_until_mended("broker halted, before the first event", &outboxd, || {
        kafka.go_on();
    })
    .await;
    assert!(said.contains("no broker answered within 3s"), "{said}");

    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    kafka.halt();
    database.event("CLM-2", "{}").await;
    let said = red_until_mended("broker halted, an event pending", &outboxd, || {
        kafka.go_on();
    })
    .await;
    assert!(names_the_broker(&said), "{said}");

    database.all_confirmed().await;
    kafka.halt();
    let said = red_until_mended("broker halted, idle again", &outboxd, || kafka.go_on()).await;
    assert!(said.contains("no broker answered within 3s"), "{said}");
    assert_eq!(keys(&database, &kafka.address()), ["CLM-1", "CLM-2"]);
}

/// A record refused for good makes the client give up as a whole, since what was queued behind it
/// must not overtake it (rule R3).
#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_gave_up_is_replaced_until_the_broker_takes_the_event() {
    let kafka = OwnKafka::start_with(&[
        "--prop",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "--prop",
        "allow.everyone.if.no.acl.found=true",
    ]);
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    let outboxd = Setup::of(&database).start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    outboxd.ready_becomes(200).await;

    let topic = format!("{}.claim.events", database.name);
    let denial = ["--deny-principal", "User:*", "--operation", "Write"];
    let of_topic = ["--topic", topic.as_str()];
    kafka.tool("acls", &[&["--add"], &denial[..], &of_topic].concat());
    database.event("CLM-2", "{}").await;
    database.event("CLM-3", "{}").await;
    let broken = Instant::now();
    let said = outboxd.ready_becomes(503).await;
    println!(
        "a record refused for good: not ready after {:.1} s; {said}",
        broken.elapsed().as_secs_f64()
    );
    assert!(
        said.contains(&topic) && said.contains("grant the client Write"),
        "{said}"
    );
    let gave_up = outboxd
        .metric(r#"outboxd_errors_total,class="rewind""#)
        .await;
    assert!(gave_up > Some(0.0), "{gave_up:?}");
    kafka.tool(
        "acls",
        &[&["--remove", "--force"], &denial[..], &of_topic].concat(),
    );
    let mended = Instant::now();
    database.all_confirmed().await;
    outboxd.ready_becomes(200).await;
    println!(
        "a record refused for good: delivered and ready {:.1} s after it was allowed",
        mended.elapsed().as_secs_f64()
    );
    assert_eq!(
        keys(&database, &kafka.address()),
        ["CLM-1", "CLM-2", "CLM-3"]
    );
}
