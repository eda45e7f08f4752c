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
    fn the_client_library_accepts_every_setting() {
        with(&[])
            .create_native_config()
            .expect("all names and values are known");
    }
}
