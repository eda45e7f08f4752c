use super::*;
use crate::ops::Monitor;
use crate::sink::KafkaOptions;
use crate::source::postgres::pgoutput::{Timestamp, Xid};

const LIMITS: DeliveryConfig = DeliveryConfig {
    max_queue_size: 10,
    max_queue_bytes: 1000,
    resume_transactions: 10,
    shutdown_timeout: Duration::from_secs(1),
    server_shutdown_grace: Duration::from_secs(1),
    ready_max_unacknowledged: Duration::from_secs(1),
};

/// No broker is there, so that nothing is acknowledged but what a test says.
fn options() -> SinkOptions {
    SinkOptions::Kafka(KafkaOptions {
        bootstrap_servers: "127.0.0.1:1".to_owned(),
        properties: Vec::new(),
    })
}

fn opened() -> Delivery {
    let connector = Monitor::empty().connector("test", LIMITS.ready_max_unacknowledged);
    Delivery::open(&options(), &LIMITS, connector, None, 0).unwrap()
}

/// With one event in flight, whose transaction ends at `end`.
fn with_one_event(mut delivery: Delivery, end: u64) -> Delivery {
    let begin = Begin {
        final_lsn: Lsn::new(end - 1),
        commit_time: Timestamp(0),
        xid: Xid(1),
    };
    let record = OutgoingRecord {
        topic: "t",
        key: Some(b"k"),
        value: Some(b"v"),
        headers: &[],
    };
    delivery.begin(begin).unwrap();
    assert!(delivery.try_enqueue(record.size(), &record).unwrap());
    delivery.handled();
    delivery.commit(Lsn::new(end)).unwrap();
    delivery
}

/// Reports of `late`, a producer given up, come after `next` took its place; then its own.
async fn only_its_own_reports_count(late: &Reports, mut next: Delivery) {
    // Both number their events from 0 on.
    late.put(Report::delivered(Sequence(0)));
    next.collect().unwrap();
    assert_eq!(next.in_flight(), 1, "another producer's report counts");
    assert_eq!(next.confirmed(), ConfirmedLsn::NONE);

    next.reports.put(Report::delivered(Sequence(0)));
    next.collect().unwrap();
    assert_eq!(next.in_flight(), 0);
    assert_eq!(next.confirmed().lsn(), Lsn::new(200));
    next.close().await;
}

#[tokio::test]
async fn the_late_report_of_a_producer_given_up_acknowledges_nothing_of_its_successor() {
    let given_up = with_one_event(opened(), 100);
    let late = Arc::clone(&given_up.reports);
    given_up.close().await;
    only_its_own_reports_count(&late, with_one_event(opened(), 200)).await;
}

#[tokio::test]
async fn nor_does_it_where_the_successor_keeps_what_was_handed_over() {
    let refused = with_one_event(opened(), 100);
    let late = Arc::clone(&refused.reports);
    let renewed = refused.renewed(&options(), &LIMITS).await.unwrap();
    only_its_own_reports_count(&late, with_one_event(renewed, 200)).await;
}
