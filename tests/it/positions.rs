//! Each record can say where its event stands in the log, so that gaps and repeats are told.

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::services::Services;
use crate::support::topic::{self, Record};

fn position(record: &Record) -> [String; 3] {
    ["lsn", "sequence", "commit.time"].map(|name| {
        let header = record.header(&format!("__outboxd.position.{name}"));
        header.expect(name)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_numbered_in_their_transaction_also_over_a_lost_connection() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let topic = format!("{}.claim.events", database.name);
    let mut setup = Setup::of(&database);
    setup.set("outboxd.position.headers", "true");
    let mut outboxd = setup.start().await;
    // Rows of other tables, updates and deletes are no events.
    database
        .execute(
            "CREATE TABLE other (n int);
             INSERT INTO outbox SELECT gen_random_uuid(), 'claim', 'k', 't', '{}' FROM generate_series(1, 100000);
             INSERT INTO other VALUES (1);
             DELETE FROM outbox WHERE aggregate_type = 'claim';
             INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', 'k', 't', '{}')",
        )
        .await;
    let some = async || (topic::count(&database.services.kafka, &topic) > 0).then_some(());
    eventually("the first of its events arrive", some).await;
    database
        .execute(&format!(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{}' AND active",
            database.name
        ))
        .await;
    database.event("k", "{}").await;
    database.all_confirmed().await;

    let records = topic::read_all(&database.services.kafka, &topic);
    assert_eq!(records.len(), 100_002, "nothing comes twice");
    let positions: Vec<_> = records.iter().map(position).collect();
    let (last, first_transaction) = positions.split_last().unwrap();
    let [lsn, _, time] = &first_transaction[0];
    for (number, found) in first_transaction.iter().enumerate() {
        assert_eq!(found, &[lsn.clone(), number.to_string(), time.clone()]);
    }
    assert_eq!(last[1], "0");
    assert!(last[0] != *lsn && last[2] > *time);
    let committed: i64 = time.parse().unwrap();
    let now = database
        .ask("SELECT (extract(epoch FROM now()) * 1000000)::bigint::text")
        .await;
    let now: i64 = now.unwrap().parse().unwrap();
    assert!(committed <= now && now - committed < 3_600_000_000);
    println!("first position: {:?}", positions[0]);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_said_of_positions_unless_it_is_asked_for() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let _outboxd = Setup::of(&database).start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let topic = format!("{}.claim.events", database.name);
    let records = topic::read_all(&database.services.kafka, &topic);
    assert!(
        records[0]
            .headers
            .iter()
            .all(|(name, _)| !name.contains("outboxd"))
    );
}
