use rdkafka::ClientConfig;

use crate::sink::KafkaOptions;

/// What a user may change, with our defaults.
const DEFAULTS: [(&str, &str); 4] = [
    ("client.id", "outboxd"),
    // Enough to fill a batch under load, too little to be felt.
    ("linger.ms", "1"),
    ("socket.nagle.disable", "true"),
    ("socket.keepalive.enable", "true"),
];

/// What the delivery rules fix; set last, so that nothing can change it.
const FIXED: [(&str, &str); 8] = [
    // R1: acknowledged means safe.
    ("acks", "all"),
    // R3: retries keep the order and make no copies.
    ("enable.idempotence", "true"),
    // R3: with these two a record that cannot be delivered stops the producer, instead of
    // being left out while later ones go on.
    ("enable.gapless.guarantee", "true"),
    ("message.timeout.ms", "0"),
    // R3: keys stay on the partitions where the Java client put them.
    ("partitioner", "murmur2_random"),
    // R5: the relay bounds what is in flight; a second, smaller bound would only be in the way.
    ("queue.buffering.max.messages", "0"),
    ("queue.buffering.max.kbytes", "2147483647"),
    // Successes are needed as well as failures.
    ("delivery.report.only.error", "false"),
];

/// `batch.size` where nobody sets it: the client library's default.
const BATCH_SIZE: usize = 1_000_000;
/// What a batch has beside its records.
const BATCH_OVERHEAD: usize = 128;

/// Keeps batches below what a topic takes at once; whether they could be larger until now.
///
/// The broker holds a whole batch, and not each record, against `max.message.bytes`; unlike the
/// Java client, librdkafka does not send a batch that was refused in parts.
pub(super) fn keep_batches_below(options: &mut KafkaOptions, max_message_bytes: usize) -> bool {
    let set = |(name, value): &(String, String)| {
        (name == "batch.size").then(|| value.trim().parse::<usize>().ok())?
    };
    let batch_size = options.properties.iter().rev().find_map(set);
    let fits = max_message_bytes.saturating_sub(BATCH_OVERHEAD).max(1);
    let is_larger = batch_size.unwrap_or(BATCH_SIZE) > fits;
    if is_larger {
        let property = ("batch.size".to_owned(), fits.to_string());
        options.properties.push(property);
    }
    is_larger
}

/// The producer's whole configuration.
pub(super) fn client_config(options: &KafkaOptions) -> ClientConfig {
    let mut config = ClientConfig::new();
    let own = options
        .properties
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in DEFAULTS.into_iter().chain(own).chain(FIXED) {
        config.set(name, value);
    }
    config.set("bootstrap.servers", &options.bootstrap_servers);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(properties: &[(&str, &str)]) -> ClientConfig {
        client_config(&KafkaOptions {
            bootstrap_servers: "localhost:9092".to_owned(),
            properties: properties
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        })
    }

    #[test]
    fn the_delivery_rules_cannot_be_changed() {
        let config = with(&[
            ("acks", "1"),
            ("message.timeout.ms", "1000"),
            ("linger.ms", "20"),
        ]);
        assert_eq!(config.get("acks"), Some("all"));
        assert_eq!(config.get("message.timeout.ms"), Some("0"));
        assert_eq!(config.get("linger.ms"), Some("20"));
    }

    #[test]
    fn batches_are_kept_below_what_a_topic_takes() {
        let mut options = KafkaOptions {
            bootstrap_servers: "localhost:9092".to_owned(),
            properties: Vec::new(),
        };
        assert!(!keep_batches_below(&mut options, 1_048_588));
        assert!(keep_batches_below(&mut options, 3000));
        assert!(!keep_batches_below(&mut options, 3000));
        assert!(!keep_batches_below(&mut options, 5000));
        assert_eq!(client_config(&options).get("batch.size"), Some("2872"));
    }

    #[test]
    fn the_client_library_accepts_every_setting() {
        with(&[])
            .create_native_config()
            .expect("all names and values are known");
    }
}
