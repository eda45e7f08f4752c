//! Health says whether events are delivered, and the endpoint is in nobody's way.

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::{OwnKafka, Services};

#[tokio::test(flavor = "multi_thread")]
async fn not_ready_while_the_broker_is_halted_and_ready_again_by_itself() {
    let kafka = OwnKafka::start();
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    let mut setup = Setup::of(&database);
    setup.set("outboxd.ready.max.unacknowledged.ms", "500");
    let outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    outboxd.ready_becomes(200).await;
    kafka.halt();
    database.event("CLM-2", "{}").await;
    let said = outboxd.ready_becomes(503).await;
    assert!(
        said.contains("outboxd.ready.max.unacknowledged.ms"),
        "{said}"
    );
    assert_eq!(outboxd.get("/health/live").await.0, 200);
    assert_eq!(outboxd.metric("outboxd_ready").await, Some(0.0));
    assert_eq!(outboxd.metric("outboxd_streaming").await, Some(1.0));
    assert!(
        outboxd
            .metric("outboxd_oldest_unacknowledged_age_seconds")
            .await
            > Some(0.5)
    );
    kafka.go_on();
    outboxd.ready_becomes(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn not_ready_with_the_reason_and_live_while_it_waits_for_the_slot() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    let mut first = setup.start().await;
    first.ready_becomes(200).await;
    let mut second = setup.spawn();
    second.says("waiting until it is free").await;
    let said = second.ready_becomes(503).await;
    assert!(said.contains("is read by the server process"), "{said}");
    assert!(said.contains(r#""state":"waiting""#), "{said}");
    assert_eq!(second.get("/health/live").await.0, 200);
    assert_eq!(first.stop().await, 0);
    second.ready_becomes(200).await;
}

/// BR-117.
#[tokio::test(flavor = "multi_thread")]
async fn a_scraper_that_stays_connected_does_not_keep_the_process_alive() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut outboxd = Setup::of(&database).start().await;
    let mut scraper = TcpStream::connect(outboxd.http_address().unwrap())
        .await
        .unwrap();
    // Half a request, and the rest never comes.
    scraper
        .write_all(b"GET /metrics HTTP/1.1\r\n")
        .await
        .unwrap();
    assert_eq!(outboxd.stop().await, 0);
}

/// BR-117.
#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_one_clear_error_before_anything_is_touched() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let occupied = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = occupied.local_addr().unwrap().port().to_string();
    let mut setup = Setup::of(&database);
    // The environment wins over the file.
    setup
        .environment
        .push(("OUTBOXD_HTTP_PORT".to_owned(), port.clone()));
    let (code, said) = setup.fails();
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains(&port) && said.contains("outboxd.http.port"),
        "{said}"
    );
    assert_eq!(database.slot("slot_name").await, None);

    // Without the endpoint nobody needs the port, and --set wins over the environment.
    setup.arguments = vec!["--set".to_owned(), "outboxd.http.port=off".to_owned()];
    let mut outboxd = setup.start().await;
    assert_eq!(outboxd.http_address(), None);
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    assert_eq!(outboxd.stop().await, 0);
}
