use std::collections::BTreeMap;

use super::Reader;
use crate::config::options::{self, Section, Status};
use crate::config::origin::Layer;
use crate::sink::KafkaOptions;

const BOOTSTRAP: &str = "bootstrap.servers";

/// The Kafka client's settings: those of the connector (`producer.override.`) over those of the
/// worker's producers (`producer.`) over TLS and SASL of the worker itself, and `--set` over
/// all. As in Connect (`Worker.baseProducerConfigs`), but that there a worker's TLS and SASL do
/// not reach its producers.
pub(super) fn options(reader: &mut Reader<'_>) -> Option<KafkaOptions> {
    let mut settings: BTreeMap<&str, ((bool, usize), &str, &str)> = BTreeMap::new();
    for (key, entry) in reader.raw().iter().filter(|(_, entry)| entry.is_usable()) {
        let layer = entry.origin().layer();
        let Some(name) = options::client_name(key, layer) else {
            continue;
        };
        let option = options::find(key, layer, None);
        if !option.is_some_and(|option| {
            option.section == Section::Client && option.status == Status::Honoured
        }) {
            continue;
        }
        // The longer the prefix, the more it is about this connector.
        let rank = (layer == Layer::Set, key.len() - name.len());
        let text = if options::is_secret(name) {
            entry.text()
        } else {
            entry.text().trim()
        };
        if settings.get(name).is_none_or(|(other, ..)| rank > *other) {
            settings.insert(name, (rank, key, text));
        }
    }
    let bootstrap_servers = match settings.remove(BOOTSTRAP) {
        Some((_, key, servers)) => brokers(reader, key, servers)?,
        None => reader.text(BOOTSTRAP)?,
    };
    let properties = settings
        .into_iter()
        .map(|(name, (_, _, text))| (name.to_owned(), text.to_owned()));
    Some(KafkaOptions {
        bootstrap_servers: bootstrap_servers.to_owned(),
        properties: properties.collect(),
    })
}

/// The list as it is, once each broker in it has a host and a port.
fn brokers<'a>(reader: &mut Reader<'_>, key: &str, servers: &'a str) -> Option<&'a str> {
    let is_broker = |broker: &str| {
        let (host, port) = broker.trim().rsplit_once(':').unwrap_or_default();
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    if servers.split(',').all(is_broker) {
        return Some(servers);
    }
    let what = format!("{} is not a list of brokers", reader.shown(key));
    reader.problem(key, what, "write host:port, further ones behind commas");
    None
}
