//! An independent consumer: reads whole topics from the beginning.

use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Headers, Message};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::PATIENCE;

/// A record as it lies in Kafka.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Milliseconds since 1970.
    pub timestamp: Option<i64>,
}

impl Record {
    /// The header `id` as text.
    pub fn id(&self) -> String {
        self.header("id").expect("a header id")
    }

    pub fn header(&self, name: &str) -> Option<String> {
        let (_, value) = self.headers.iter().find(|(found, _)| found == name)?;
        Some(String::from_utf8(value.clone()?).expect("text"))
    }

    pub fn key_text(&self) -> String {
        String::from_utf8(self.key.clone().expect("a key")).expect("text")
    }

    pub fn value_text(&self) -> String {
        String::from_utf8(self.value.clone().expect("a value")).expect("text")
    }
}

/// Reads a topic until `enough` says so.
pub fn read_until(
    kafka: &str,
    topic: &str,
    mut enough: impl FnMut(&[Record]) -> bool,
) -> Vec<Record> {
    let mut reader = Reader::open(kafka, topic);
    let deadline = Instant::now() + PATIENCE;
    let mut records = Vec::new();
    while !enough(&records) {
        assert!(
            Instant::now() < deadline,
            "read {} records of {topic}, and waited {PATIENCE:?} in vain for the rest",
            records.len()
        );
        records.extend(reader.next(Duration::from_millis(200)));
    }
    records
}

/// Reads everything the topic holds now.
pub fn read_all(kafka: &str, topic: &str) -> Vec<Record> {
    let mut reader = Reader::open(kafka, topic);
    let total = usize::try_from(reader.end()).unwrap();
    let mut records = Vec::with_capacity(total);
    let deadline = Instant::now() + PATIENCE;
    while records.len() < total {
        assert!(
            Instant::now() < deadline,
            "read {} of {total} records of {topic}",
            records.len()
        );
        records.extend(reader.next(Duration::from_millis(200)));
    }
    records
}

/// How many records the topic holds now.
pub fn count(kafka: &str, topic: &str) -> i64 {
    Reader::open(kafka, topic).end()
}

/// Reads one topic's partitions from their beginning.
pub struct Reader {
    topic: String,
    consumer: BaseConsumer,
    partitions: Vec<i32>,
}

impl Reader {
    /// Waits until the topic exists.
    pub fn open(kafka: &str, topic: &str) -> Self {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", kafka)
            .set("group.id", "outboxd-tests")
            .set("enable.auto.commit", "false")
            .set("allow.auto.create.topics", "false")
            .set("fetch.wait.max.ms", "50")
            .create()
            .expect("a consumer");
        let deadline = Instant::now() + PATIENCE;
        let partitions = loop {
            let found = consumer
                .fetch_metadata(Some(topic), PATIENCE)
                .expect("metadata");
            let partitions: Vec<i32> = found.topics()[0]
                .partitions()
                .iter()
                .map(|p| p.id())
                .collect();
            if !partitions.is_empty() {
                break partitions;
            }
            assert!(
                Instant::now() < deadline,
                "topic {topic} does not come into being"
            );
        };
        let mut assignment = TopicPartitionList::new();
        for partition in &partitions {
            assignment
                .add_partition_offset(topic, *partition, Offset::Beginning)
                .unwrap();
        }
        consumer.assign(&assignment).expect("assign");
        Self {
            topic: topic.to_owned(),
            consumer,
            partitions,
        }
    }

    /// The sum of the partitions' ends. Asks again where the client does not know a partition's
    /// leader yet, as just after a broker was away.
    fn end(&self) -> i64 {
        let deadline = Instant::now() + PATIENCE;
        let end_of = |partition: &i32| loop {
            match self
                .consumer
                .fetch_watermarks(&self.topic, *partition, Duration::from_secs(5))
            {
                Ok((_, end)) => return end,
                Err(error) => assert!(Instant::now() < deadline, "{}: {error}", self.topic),
            }
            std::thread::park_timeout(Duration::from_millis(20));
        };
        self.partitions.iter().map(end_of).sum()
    }

    /// The next record, if one comes in time.
    pub fn next(&mut self, timeout: Duration) -> Option<Record> {
        let message = match self.consumer.poll(timeout)? {
            Ok(message) => message,
            // Just after a broker was away; the client connects again by itself.
            Err(KafkaError::MessageConsumption(
                RDKafkaErrorCode::AllBrokersDown | RDKafkaErrorCode::BrokerTransportFailure,
            )) => return None,
            Err(error) => panic!("{}: {error}", self.topic),
        };
        let headers = message.headers().map_or_else(Vec::new, |headers| {
            headers
                .iter()
                .map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec)))
                .collect()
        });
        Some(Record {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers,
            timestamp: message.timestamp().to_millis(),
        })
    }
}

fn admin(kafka: &str) -> AdminClient<DefaultClientContext> {
    ClientConfig::new()
        .set("bootstrap.servers", kafka)
        .create()
        .expect("an admin client")
}

/// Makes a topic with this many partitions.
pub async fn create(kafka: &str, topic: &str, partitions: i32) {
    create_replicated(kafka, topic, partitions, 1).await;
}

/// Makes a topic with this many partitions, each on so many brokers.
pub async fn create_replicated(kafka: &str, topic: &str, partitions: i32, brokers: i32) {
    let replication = TopicReplication::Fixed(brokers);
    make(kafka, NewTopic::new(topic, partitions, replication)).await;
}

/// Makes a topic of one partition that takes no more bytes at once.
pub async fn create_small(kafka: &str, topic: &str, max_message_bytes: &str) {
    create_set(kafka, topic, 1, &[("max.message.bytes", max_message_bytes)]).await;
}

/// Makes a topic of one partition, on so many brokers, with these settings.
pub async fn create_set(kafka: &str, topic: &str, brokers: i32, settings: &[(&str, &str)]) {
    let mut topic = NewTopic::new(topic, 1, TopicReplication::Fixed(brokers));
    for (name, value) in settings {
        topic = topic.set(name, value);
    }
    make(kafka, topic).await;
}

/// Lets a topic take messages of this many bytes.
pub async fn set_max_message_bytes(kafka: &str, topic: &str, bytes: &str) {
    let change = AlterConfig::new(ResourceSpecifier::Topic(topic)).set("max.message.bytes", bytes);
    let results = admin(kafka)
        .alter_configs(&[change], &AdminOptions::new())
        .await
        .expect("an answer");
    for result in results {
        result.expect("the topic is altered");
    }
}

async fn make(kafka: &str, topic: NewTopic<'_>) {
    let results = admin(kafka)
        .create_topics(&[topic], &AdminOptions::new())
        .await
        .expect("an answer");
    for result in results {
        result.expect("the topic is created");
    }
}

pub async fn delete(kafka: &str, topic: &str) {
    let results = admin(kafka)
        .delete_topics(&[topic], &AdminOptions::new())
        .await
        .expect("an answer");
    for result in results {
        result.expect("the topic is deleted");
    }
}

/// Whether the topic exists; the question does not make it.
pub fn exists(kafka: &str, topic: &str) -> bool {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", kafka)
        .create()
        .expect("a consumer");
    let all = consumer.fetch_metadata(None, PATIENCE).expect("metadata");
    all.topics().iter().any(|found| found.name() == topic)
}
