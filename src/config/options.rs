//! The one table of all known keys, and how a written key finds its row.

mod table;

pub use table::OPTIONS;

use super::origin::Layer;

/// A key that means something to Debezium, Kafka Connect, the Kafka client or outboxd.
#[derive(Debug, Clone, Copy)]
pub struct KnownOption {
    /// Where the key belongs, and thereby how it is written.
    pub section: Section,
    /// The key below its section's prefix. A final `.*` stands for everything below.
    pub key: &'static str,
    /// What holds when the key is absent; empty when nothing does.
    pub default: &'static str,
    /// What this version does with it.
    pub status: Status,
    /// What it means, in one sentence.
    pub meaning: &'static str,
}

/// Where a key belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Debezium's connector and Connect's per-connector keys, written as they are.
    Connector,
    /// The outbox event router's, below `transforms.<alias>.`.
    Router,
    /// A converter's, below `key.converter`, `value.converter` or `header.converter`.
    Converter,
    /// The Kafka producer's, below `producer.override.` (connector) or `producer.` (worker);
    /// in a worker file TLS and SASL also bare.
    Client,
    /// Kafka Connect's worker's, written as they are.
    Worker,
    /// outboxd's own, below `outboxd.`.
    Own,
}

/// What this version does with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It has its meaning.
    Honoured,
    /// Leaving it out changes nothing, for this reason; accepted without a word.
    NoEffect(&'static str),
    /// What it asks for does not happen, for this reason; a warning unless it asks for the default.
    Overruled(&'static str),
    /// Anything but the default is refused for now, for this reason.
    OnlyDefault(&'static str),
    /// Always refused; what to do instead.
    Refused(&'static str),
}

/// The row of a written key: its own, or that of the family it belongs to. Router keys are
/// looked up below `alias`; while no alias is known, below any.
pub(super) fn find(key: &str, layer: Layer, alias: Option<&str>) -> Option<&'static KnownOption> {
    let (section, rest) = place(key, layer, alias);
    let sections = match section {
        Some(section) => vec![section],
        // A few names mean one thing to a worker and another to a connector.
        None if layer == Layer::Worker => vec![Section::Own, Section::Worker, Section::Connector],
        None => vec![Section::Own, Section::Connector, Section::Worker],
    };
    let within = |section| {
        OPTIONS
            .iter()
            .filter(move |option| option.section == section)
    };
    sections.into_iter().find_map(|section| {
        let exact = within(section).find(|option| option.key == rest);
        exact.or_else(|| within(section).find(|option| option.covers(rest)))
    })
}

/// The Kafka client's name for a key, if it is one of its keys.
pub(super) fn client_name(key: &str, layer: Layer) -> Option<&str> {
    match place(key, layer, None) {
        (Some(Section::Client), name) => Some(name),
        _ => None,
    }
}

/// The section that a key's prefix names, if any, and the key below it.
fn place<'a>(key: &'a str, layer: Layer, alias: Option<&str>) -> (Option<Section>, &'a str) {
    let router = key
        .strip_prefix("transforms.")
        .and_then(|rest| rest.split_once('.'));
    if let Some((named, rest)) = router
        && alias.is_none_or(|alias| alias == named)
    {
        return (Some(Section::Router), rest);
    }
    for role in ROLES {
        if let Some(rest) = key
            .strip_prefix(role)
            .and_then(|rest| rest.strip_prefix(".converter"))
            && (rest.is_empty() || rest.starts_with('.'))
        {
            return (Some(Section::Converter), rest);
        }
    }
    if layer != Layer::Worker
        && let Some(rest) = key.strip_prefix("producer.override.")
    {
        return (Some(Section::Client), rest);
    }
    if layer != Layer::Connector {
        if let Some(rest) = key.strip_prefix("producer.") {
            return (Some(Section::Client), rest);
        }
        if ["security.", "sasl.", "ssl."]
            .iter()
            .any(|prefix| key.starts_with(prefix))
        {
            return (Some(Section::Client), key);
        }
    }
    if key == "bootstrap.servers" {
        return (Some(Section::Client), key);
    }
    (None, key)
}

/// What a converter can be for.
pub(super) const ROLES: [&str; 3] = ["key", "value", "header"];

/// Every full key that could have been meant in this layer.
pub(super) fn candidates(layer: Layer, alias: Option<&str>) -> impl Iterator<Item = String> {
    let single = OPTIONS.iter().filter(|option| !option.key.ends_with(".*"));
    single.flat_map(move |option| {
        let key = option.key;
        match option.section {
            Section::Connector | Section::Worker | Section::Own => vec![key.to_owned()],
            Section::Router => alias
                .map(|alias| format!("transforms.{alias}.{key}"))
                .into_iter()
                .collect(),
            Section::Converter => ROLES.map(|role| format!("{role}.converter{key}")).into(),
            Section::Client if key == "bootstrap.servers" => vec![key.to_owned()],
            Section::Client => match layer {
                Layer::Connector => vec![format!("producer.override.{key}")],
                Layer::Worker => vec![format!("producer.{key}"), key.to_owned()],
                Layer::Set => vec![
                    format!("producer.override.{key}"),
                    format!("producer.{key}"),
                    key.to_owned(),
                ],
            },
        }
    })
}

/// Whether a key's value is or may be a secret: password, token, key material.
pub(super) fn is_secret(key: &str) -> bool {
    const MARKS: [&str; 12] = [
        "password",
        "passphrase",
        "secret",
        "jaas",
        "token",
        "credential",
        "connectionstring",
        "connection.string",
        "key.pem",
        "keystore.key",
        "oauthbearer.config",
        "user.info",
    ];
    let key = key.to_ascii_lowercase();
    MARKS.iter().any(|mark| key.contains(mark))
}

impl KnownOption {
    /// Whether a key below the section belongs to this row's family.
    fn covers(&self, key: &str) -> bool {
        self.key
            .strip_suffix('*')
            .is_some_and(|family| key.starts_with(family))
    }

    /// Whether a value asks for what would happen anyway.
    pub(super) fn is_default(&self, value: &str) -> bool {
        value.trim().eq_ignore_ascii_case(self.default)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn status(key: &str, layer: Layer) -> Option<Status> {
        find(key, layer, Some("outbox")).map(|option| option.status)
    }

    #[test]
    fn every_row_is_unique_and_says_what_it_means() {
        let mut seen = HashSet::new();
        for option in OPTIONS {
            assert!(
                seen.insert((option.section as u8, option.key)),
                "{} twice",
                option.key
            );
            assert!(option.meaning.ends_with('.'), "{}", option.key);
            assert!(
                !option.key.ends_with(".*") || option.status != Status::Honoured,
                "{}",
                option.key
            );
        }
    }

    #[test]
    fn every_candidate_is_found_again() {
        for layer in [Layer::Worker, Layer::Connector, Layer::Set] {
            for key in candidates(layer, Some("outbox")).filter(|key| key.contains("producer")) {
                assert!(find(&key, layer, Some("outbox")).is_some(), "{key}");
            }
        }
    }

    #[test]
    fn finds_rows_by_section() {
        use Status::Honoured;
        for (key, layer) in [
            ("slot.name", Layer::Connector),
            ("transforms.outbox.route.by.field", Layer::Connector),
            ("key.converter", Layer::Worker),
            ("header.converter.schemas.enable", Layer::Connector),
            ("producer.override.linger.ms", Layer::Connector),
            ("producer.linger.ms", Layer::Worker),
            ("sasl.password", Layer::Worker),
            ("sasl.password", Layer::Set),
            ("bootstrap.servers", Layer::Connector),
            ("outboxd.sink.type", Layer::Set),
        ] {
            assert_eq!(status(key, layer), Some(Honoured), "{key}");
        }
        for (key, layer) in [
            ("sasl.password", Layer::Connector),
            ("producer.linger.ms", Layer::Connector),
            ("transforms.other.route.by.field", Layer::Connector),
            ("key.converters", Layer::Worker),
            ("slot.nam", Layer::Connector),
        ] {
            assert_eq!(status(key, layer), None, "{key}");
        }
        assert!(matches!(
            status("config.storage.topic", Layer::Worker),
            Some(Status::NoEffect(_))
        ));
        assert!(matches!(
            status("predicates.isOb.type", Layer::Connector),
            Some(Status::Refused(_))
        ));
    }

    #[test]
    fn knows_secrets_by_name() {
        for key in [
            "database.password",
            "producer.sasl.jaas.config",
            "ssl.key.pem",
            "x.SECRET",
            "ssl.keystore.key",
        ] {
            assert!(is_secret(key), "{key}");
        }
        for key in [
            "key.converter",
            "database.user",
            "slot.name",
            "ssl.key.location",
        ] {
            assert!(!is_secret(key), "{key}");
        }
    }
}
