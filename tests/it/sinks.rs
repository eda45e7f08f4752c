//! The sinks besides Kafka.

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::services::Services;

#[tokio::test(flavor = "multi_thread")]
async fn standard_output_shows_topic_key_headers_and_value() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("outboxd.sink.type", "stdout");
    let mut outboxd = setup.start().await;
    let id = database.event("CLM-1001", r#"{"amount": 1250.50}"#).await;
    database.all_confirmed().await;
    assert_eq!(outboxd.stop().await, 0);
    assert_eq!(
        outboxd.output(),
        format!(
            "{}.claim.events  key=CLM-1001  headers=[id:{id}, eventType:ClaimSubmitted]  value={{\"amount\": 1250.50}}\n",
            database.name
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_null_sink_acknowledges_everything() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    setup.set("outboxd.sink.type", "null");
    let _outboxd = setup.start().await;
    for number in 0..10 {
        database.event(&format!("CLM-{number}"), "{}").await;
    }
    let end = database.wal_end().await;
    eventually("the slot moves", async || {
        database.confirmed(&end).await.then_some(())
    })
    .await;
}
