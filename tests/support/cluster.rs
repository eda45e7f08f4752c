//! Three brokers, each of them a controller too, so that leaders can change.

use std::net::TcpListener;
use std::time::Instant;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};

use super::services::{OwnKafka, scratch};
use super::{PATIENCE, pause};

pub struct OwnCluster {
    brokers: Vec<OwnKafka>,
}

impl OwnCluster {
    pub const BROKERS: usize = 3;

    /// Records are on all brokers, and acknowledged when two have them.
    pub fn start() -> Self {
        // They have to know each other before any of them is there.
        let ports: Vec<u16> = (0..Self::BROKERS)
            .map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"))
            .map(|listener| listener.local_addr().expect("an address").port())
            .collect();
        let voters: Vec<String> = (1..)
            .zip(&ports)
            .map(|(id, port)| format!("{id}@127.0.0.1:{port}"))
            .collect();
        let voters = format!("controller.quorum.voters={}", voters.join(","));
        // None serves before there are two.
        let starting: Vec<_> = (1..)
            .zip(ports)
            .map(|(id, port)| {
                let voters = voters.clone();
                std::thread::spawn(move || start_one(id, port, &voters))
            })
            .collect();
        let brokers = starting
            .into_iter()
            .map(|one| one.join().expect("it starts"));
        Self {
            brokers: brokers.collect(),
        }
    }

    /// All their addresses, for `bootstrap.servers`.
    pub fn addresses(&self) -> String {
        let addresses: Vec<String> = self.brokers.iter().map(OwnKafka::address).collect();
        addresses.join(",")
    }

    /// A broker by its id, from 1 on.
    pub fn broker(&self, id: i32) -> &OwnKafka {
        &self.brokers[usize::try_from(id).expect("an id") - 1]
    }

    /// The id of the broker that leads the partition, once there is one.
    pub async fn leader(&self, topic: &str, partition: i32) -> i32 {
        self.leader_is_not(0, topic, partition).await
    }

    /// Waits until another broker leads the partition; its id. Brokers that do not answer are
    /// passed over.
    pub async fn leader_is_not(&self, old: i32, topic: &str, partition: i32) -> i32 {
        let addresses = self.addresses();
        // No async closure: the future has to be Send for every lifetime.
        let deadline = Instant::now() + PATIENCE;
        loop {
            match leader(&addresses, topic, partition) {
                Some(id) if id != old => return id,
                _ => assert!(Instant::now() < deadline, "no other broker leads"),
            }
            pause().await;
        }
    }
}

fn start_one(id: i32, controller_port: u16, voters: &str) -> OwnKafka {
    let folder = scratch("kafka");
    std::fs::write(folder.join("controller-port"), controller_port.to_string())
        .expect("write the controller's port");
    let id = format!("node.id={id}");
    let properties = [
        id.as_str(),
        voters,
        "default.replication.factor=3",
        "min.insync.replicas=2",
    ];
    let arguments: Vec<&str> = properties.iter().flat_map(|one| ["--prop", one]).collect();
    OwnKafka::start_in(folder, &arguments)
}

fn leader(addresses: &str, topic: &str, partition: i32) -> Option<i32> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", addresses)
        .set("allow.auto.create.topics", "false")
        .create()
        .expect("a client");
    let metadata =
        tokio::task::block_in_place(|| consumer.fetch_metadata(Some(topic), PATIENCE / 10));
    let metadata = metadata.ok()?;
    let partitions = metadata.topics().first()?.partitions();
    let found = partitions.iter().find(|one| one.id() == partition)?;
    // Without a leader it is -1.
    (found.leader() > 0).then_some(found.leader())
}
