//! What only the client library's own mock cluster can bring about: chosen error codes, and a
//! producer that gives up.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

use super::*;
use crate::model::ErrorClass;
use crate::sink::Report;

const PATIENCE: Duration = Duration::from_secs(60);

struct Fixture {
    cluster: MockCluster<'static, DefaultProducerContext>,
    reports: Arc<Reports>,
    sink: KafkaSink,
    reported: Vec<Report>,
}

impl Fixture {
    /// A cluster of one broker with the topic `t`; `prepare` sees it before the producer does.
    fn new(prepare: impl FnOnce(&MockCluster<'static, DefaultProducerContext>)) -> Self {
        Self::with(&[], prepare)
    }

    fn with(
        properties: &[(&str, &str)],
        prepare: impl FnOnce(&MockCluster<'static, DefaultProducerContext>),
    ) -> Self {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("t", 1, 1).unwrap();
        prepare(&cluster);
        let reports = Arc::new(Reports::default());
        let options = KafkaOptions {
            bootstrap_servers: cluster.bootstrap_servers(),
            properties: properties
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        let sink = KafkaSink::open(&options, Arc::clone(&reports)).unwrap();
        Self {
            cluster,
            reports,
            sink,
            reported: Vec::new(),
        }
    }

    fn enqueue(&mut self, sequence: u64) -> Result<(), SinkError> {
        self.enqueue_value(sequence, b"v")
    }

    fn enqueue_value(&mut self, sequence: u64, value: &[u8]) -> Result<(), SinkError> {
        self.sink.enqueue(
            Sequence(sequence),
            &OutgoingRecord {
                topic: "t",
                key: Some(b"k"),
                value: Some(value),
                headers: &[],
            },
        )
    }

    async fn verdict(&mut self) -> DeliveryFailure {
        let waiting = async {
            loop {
                if let Some(failure) = self.sink.verdict() {
                    return failure;
                }
                self.reports.arrived().await;
                self.take();
            }
        };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .expect("a verdict")
    }

    /// Waits until so many records are reported.
    async fn reported(&mut self, count: usize) {
        let waiting = async {
            while self.reported.len() < count {
                self.reports.arrived().await;
                self.take();
            }
        };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .expect("reports");
    }

    fn take(&mut self) {
        let mut taken = Vec::new();
        self.reports.take(&mut taken);
        self.reported.append(&mut taken);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_gives_up_with_nothing_in_flight_is_noticed() {
    let mut fixture = Fixture::new(|cluster| {
        cluster.request_errors(
            RDKafkaApiKey::InitProducerId,
            &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED; 8],
        );
    });
    let failure = fixture.verdict().await;
    assert_eq!(failure.class(), ErrorClass::Rewind);
    assert_eq!(failure.pause(), Pause::Long);
    assert!(failure.to_string().contains("IdempotentWrite"), "{failure}");
    assert!(matches!(fixture.enqueue(1), Err(SinkError::Full)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_that_was_refused_is_told_and_not_what_followed_from_it() {
    let mut fixture = Fixture::new(|cluster| {
        cluster.request_errors(
            RDKafkaApiKey::Produce,
            &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE],
        );
    });
    for sequence in 1..=3 {
        fixture.enqueue(sequence).unwrap();
    }
    // It makes the client give up as a whole, which is said by its error callback as well.
    let failure = fixture.verdict().await;
    assert_eq!(failure.class(), ErrorClass::Poison, "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_producer_waits() {
    let mut fixture = Fixture::new(|cluster| {
        cluster.request_errors(
            RDKafkaApiKey::Produce,
            &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_POLICY_VIOLATION],
        );
    });
    fixture.enqueue(1).unwrap();
    let failure = fixture.verdict().await;
    assert_eq!(
        (failure.class(), failure.pause()),
        (ErrorClass::Rewind, Pause::Long)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_out_of_step_with_the_broker_is_replaced() {
    let mut fixture = Fixture::new(|cluster| {
        cluster.request_errors(
            RDKafkaApiKey::Produce,
            &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER],
        );
    });
    fixture.enqueue(1).unwrap();
    let failure = fixture.verdict().await;
    assert_eq!(failure.class(), ErrorClass::Rewind, "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_changes_are_the_clients_own_business() {
    let mut fixture = Fixture::new(|cluster| {
        cluster.request_errors(
            RDKafkaApiKey::Produce,
            &[
                RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
                RDKafkaRespErr::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
            ],
        );
    });
    fixture.enqueue(1).unwrap();
    fixture.reported(1).await;
    assert!(fixture.reported[0].outcome.is_ok());
    assert_eq!(fixture.sink.verdict(), None);
}

/// Several requests are on their way at once, and some of them fail for a while: what is tried
/// again must not come behind what followed it (rule R3).
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_tried_again_keep_their_order_and_make_no_copies() {
    const RECORDS: u64 = 1000;
    use RDKafkaRespErr::*;
    let mut fixture = Fixture::with(
        &[("batch.num.messages", "10"), ("retry.backoff.ms", "10")],
        |cluster| {
            cluster.request_errors(
                RDKafkaApiKey::Produce,
                &[
                    RD_KAFKA_RESP_ERR_NO_ERROR,
                    RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                    RD_KAFKA_RESP_ERR_NO_ERROR,
                    RD_KAFKA_RESP_ERR_NO_ERROR,
                    RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                    RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                ],
            );
        },
    );
    for sequence in 0..RECORDS {
        fixture
            .enqueue_value(sequence, &sequence.to_be_bytes())
            .unwrap();
    }
    fixture.reported(1000).await;
    assert!(fixture.reported.iter().all(|report| report.outcome.is_ok()));
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", fixture.cluster.bootstrap_servers())
        .set("group.id", "reader")
        .create()
        .unwrap();
    let mut assignment = TopicPartitionList::new();
    assignment
        .add_partition_offset("t", 0, Offset::Beginning)
        .unwrap();
    consumer.assign(&assignment).unwrap();
    let (_, end) = consumer.fetch_watermarks("t", 0, PATIENCE).unwrap();
    let found: Vec<Vec<u8>> = (0..end)
        .map(|_| {
            let message = consumer.poll(PATIENCE).expect("a record").unwrap();
            message.payload().unwrap().to_vec()
        })
        .collect();
    let expected: Vec<Vec<u8>> = (0..RECORDS).map(|n| n.to_be_bytes().to_vec()).collect();
    assert!(found == expected, "{} records", found.len());
}

/// Versions before 2.12 make a producer unusable, or end the process, in cases that this relay
/// meets.
#[test]
fn the_client_library_is_recent() {
    let (number, text) = rdkafka::util::get_rdkafka_version();
    assert!(number >= 0x020c_0000, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_sees_a_broker_go_and_come_back_without_any_record() {
    let fixture = Fixture::new(|_| {});
    let probe = fixture.sink.probe();
    let ask = |timeout| {
        let probe = probe.clone();
        tokio::task::spawn_blocking(move || probe.reachable(timeout))
    };
    assert_eq!(ask(PATIENCE).await.unwrap(), Ok(()));
    fixture.cluster.broker_down(1).unwrap();
    let why = ask(Duration::from_secs(2)).await.unwrap().unwrap_err();
    assert!(why.contains("no broker answered"), "{why}");
    fixture.cluster.broker_up(1).unwrap();
    assert_eq!(ask(PATIENCE).await.unwrap(), Ok(()));
    assert_eq!(fixture.reports.trouble(), None);
}

/// Asking for all topics is costly in a large cluster, and asking for one makes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_cluster_is_asked_for_one_topic_as_soon_as_one_is_known() {
    let mut fixture = Fixture::new(|cluster| cluster.create_topic("many", 2000, 1).unwrap());
    let probe = fixture.sink.probe();
    let ask = || {
        let probe = probe.clone();
        tokio::task::spawn_blocking(move || probe.reachable(PATIENCE))
    };
    assert!(!probe.is_costly());
    assert_eq!(ask().await.unwrap(), Ok(()));
    assert!(probe.is_costly());
    fixture.enqueue(1).unwrap();
    fixture.reported(1).await;
    assert!(!probe.is_costly());
    // The first is answered by the delivery.
    for _ in 0..2 {
        assert_eq!(ask().await.unwrap(), Ok(()));
        assert!(!probe.is_costly());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_delivered_is_answer_enough_once() {
    let mut fixture = Fixture::new(|_| {});
    fixture.enqueue(1).unwrap();
    fixture.reported(1).await;
    fixture.cluster.broker_down(1).unwrap();
    let probe = fixture.sink.probe();
    let ask = || {
        let probe = probe.clone();
        tokio::task::spawn_blocking(move || probe.reachable(Duration::from_secs(2)))
    };
    assert_eq!(ask().await.unwrap(), Ok(()));
    assert!(ask().await.unwrap().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_does_not_outlive_its_producer() {
    let fixture = Fixture::new(|_| {});
    let probe = fixture.sink.probe();
    drop(fixture.sink);
    assert!(probe.reachable(PATIENCE).is_err());
}
