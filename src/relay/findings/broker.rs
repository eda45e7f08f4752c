use std::collections::BTreeSet;

use super::{Finding, advice};
use crate::model::TopicName;
use crate::router;
use crate::sink::{BrokerFacts, BrokerTrouble, BrokerTroubleKind};

/// The topics that rows of these routed values go to, and the values that go nowhere.
pub fn topics(router: &router::Options, values: &[String]) -> (Vec<TopicName>, Vec<Finding>) {
    let (mut topics, mut findings) = (BTreeSet::new(), Vec::new());
    for value in values {
        match router.route.route(value) {
            Ok(topic) => {
                topics.insert(topic);
            }
            Err(error) => findings.push(Finding::warning(
                format!("The outbox holds a row that cannot be routed: {error}."),
                advice("correct these options, or keep such rows out of the outbox"),
            )),
        }
    }
    (topics.into_iter().collect(), findings)
}

/// The brokers, and the topics that events are known to go to.
pub fn of_broker(asked: &Result<BrokerFacts, BrokerTrouble>, topics: &[TopicName]) -> Vec<Finding> {
    match asked {
        Ok(facts) => of_reached(facts, topics),
        Err(trouble) => vec![of_trouble(trouble)],
    }
}

fn of_reached(facts: &BrokerFacts, topics: &[TopicName]) -> Vec<Finding> {
    let mut findings = vec![Finding::ok(format!(
        "Kafka answers: {}.",
        facts.brokers.join(", ")
    ))];
    if !facts.troubles.is_empty() {
        findings.push(Finding::warning(
            format!("On the way to Kafka: {}.", facts.troubles.join("; ")),
            advice("check the names in bootstrap.servers, and that each of these brokers runs"),
        ));
    }
    let (there, missing): (Vec<&TopicName>, Vec<&TopicName>) = topics
        .iter()
        .partition(|topic| facts.topics.contains_key(topic.as_str()));
    if !there.is_empty() {
        findings.push(Finding::ok(format!("Topics that exist: {}.", list(&there))));
    }
    if !missing.is_empty() {
        findings.push(of_missing(&list(&missing), facts.creates_topics));
    }
    if topics.is_empty() {
        findings.push(of_unknown(facts.creates_topics));
    }
    findings
}

fn of_missing(topics: &str, creates: Option<bool>) -> Finding {
    match creates {
        Some(true) => Finding::ok(format!(
            "Topics that do not exist: {topics}; the broker makes them when they are written to, with its own defaults."
        )),
        Some(false) => Finding::wait(
            format!(
                "Topics that do not exist: {topics}; and the broker makes none by itself (auto.create.topics.enable=false): their events would hold up all that come after them."
            ),
            advice(
                "create them: kafka-topics.sh --create --topic … with the partitions and replicas you want",
            ),
        ),
        None => Finding::warning(
            format!(
                "Topics that do not exist: {topics}; and whether the broker makes them by itself cannot be asked."
            ),
            advice("create them, as Event Hubs and other services may need it"),
        ),
    }
}

/// No row says where events go.
fn of_unknown(creates: Option<bool>) -> Finding {
    const WHERE: &str = "Which topics events go to is not known before there are rows";
    match creates {
        Some(true) => Finding::ok(format!(
            "{WHERE}; the broker makes missing ones when they are written to, with its own defaults."
        )),
        Some(false) => Finding::warning(
            format!(
                "{WHERE}; and the broker makes none by itself (auto.create.topics.enable=false)."
            ),
            advice("create each topic before its first event"),
        ),
        None => Finding::warning(
            format!("{WHERE}; and whether the broker makes missing ones cannot be asked."),
            advice("create each topic before its first event"),
        ),
    }
}

fn of_trouble(trouble: &BrokerTrouble) -> Finding {
    let of = |what: &str, mend: &str| {
        Finding::wait(
            format!("{what}: {trouble}."),
            advice(format!("{mend}; `run` keeps trying")),
        )
    };
    match trouble.kind {
        BrokerTroubleKind::Settings => Finding::error(
            format!("The Kafka client does not take its settings: {trouble}."),
            advice("correct bootstrap.servers and the settings that begin with producer."),
        ),
        BrokerTroubleKind::Name => of(
            "A Kafka broker's host name is unknown",
            "check bootstrap.servers, and that the names the brokers give themselves (advertised.listeners) are known here",
        ),
        BrokerTroubleKind::Tls => of(
            "TLS with Kafka failed",
            "check security.protocol, ssl.truststore.location (or ssl.ca.location), and that the broker's port speaks TLS",
        ),
        BrokerTroubleKind::Sasl => of(
            "Kafka does not let us in (SASL)",
            "check sasl.mechanism and sasl.jaas.config (or sasl.username and sasl.password)",
        ),
        BrokerTroubleKind::Unreachable => of(
            "Kafka cannot be reached",
            "check bootstrap.servers, that a broker runs there, and that security.protocol is what its port speaks",
        ),
        BrokerTroubleKind::Refused => of(
            "Kafka refuses",
            "check the client's rights (Write and Describe on the topics, IdempotentWrite on the cluster)",
        ),
    }
}

fn list(topics: &[&TopicName]) -> String {
    let names: Vec<&str> = topics.iter().map(|topic| topic.as_str()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    fn with(creates_topics: Option<bool>, topics: &[&str]) -> Vec<Severity> {
        let facts = BrokerFacts {
            brokers: vec!["b:9092".to_owned()],
            topics: [("claims.claim.events".to_owned(), 3)].into(),
            creates_topics,
            troubles: Vec::new(),
        };
        let topics: Vec<TopicName> = topics
            .iter()
            .map(|name| TopicName::new(*name).unwrap())
            .collect();
        let findings = of_broker(&Ok(facts), &topics);
        findings.iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn a_missing_topic_matters_where_the_broker_makes_none() {
        use Severity::{Ok, Wait, Warning};
        let mixed = ["claims.claim.events", "claims.policy.events"];
        assert_eq!(with(Some(true), &mixed), [Ok, Ok, Ok]);
        assert_eq!(with(Some(false), &mixed), [Ok, Ok, Wait]);
        assert_eq!(with(None, &mixed), [Ok, Ok, Warning]);
        assert_eq!(with(Some(false), &mixed[..1]), [Ok, Ok]);
        assert_eq!(with(Some(false), &[]), [Ok, Warning]);
    }

    #[test]
    fn only_settings_make_run_refuse() {
        let of = |kind| {
            let reasons = "why".to_owned();
            let trouble = BrokerTrouble { kind, reasons };
            let findings = of_broker(&Err(trouble), &[]);
            findings.iter().map(|finding| finding.severity).max()
        };
        assert_eq!(of(BrokerTroubleKind::Settings), Some(Severity::Error));
        assert_eq!(of(BrokerTroubleKind::Tls), Some(Severity::Wait));
    }
}
