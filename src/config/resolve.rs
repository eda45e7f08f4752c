//! The second stage: from the raw keys to what each module is given.

mod converters;
mod kafka;
mod router;
mod source;

use super::raw::RawConfig;
use super::reader::Reader;
use super::report::Report;
use super::transforms::Transforms;
use super::{Config, ContextHeaders, Delivery, Http, OnFatal, PoisonPolicy, check};
use crate::model::TopicName;
use crate::sink::SinkOptions;

const CONNECTOR: &str = "io.debezium.connector.postgresql.PostgresConnector";
/// What `max.queue.size.in.bytes` is when nothing is said: rule R5's bound.
const DEFAULT_QUEUE_BYTES: u64 = 64 * 1024 * 1024;

/// Everything at once, so that all problems are found in one go. `file_name` names a connector
/// that does not name itself.
pub(super) fn resolve(raw: &RawConfig, file_name: &str, report: &mut Report) -> Option<Config> {
    let mut reader = Reader::new(raw, report);
    let reader = &mut reader;
    connector_class(reader);
    let transforms = Transforms::read(reader);
    let name = reader.text("name").unwrap_or(file_name).to_owned();
    let topic_prefix = reader
        .required(
            "topic.prefix",
            "write the source's logical name, such as claims-db",
        )
        .map(str::to_owned);
    let context_headers = reader.boolean("extended.headers.enabled");
    let position_headers = reader.boolean("outboxd.position.headers");
    let source = source::options(reader);
    let router = router::options(reader, transforms.outbox());
    let convert = converters::options(reader);
    let sink = sink(reader);
    let delivery = delivery(reader);
    let on_fatal = reader.choice(
        "outboxd.on.fatal",
        &[("stay", Ok(OnFatal::Stay)), ("exit", Ok(OnFatal::Exit))],
    );
    let poison = poison(reader, topic_prefix.as_deref());
    let http = http(reader);
    check::check(raw, &transforms, report);

    let topic_prefix = topic_prefix?;
    let logical_name = topic_prefix.clone();
    Some(Config {
        name,
        source: source?,
        router: router?,
        convert: convert?,
        context_headers: context_headers?.then_some(ContextHeaders { logical_name }),
        position_headers: position_headers?,
        topic_prefix,
        sink: sink?,
        delivery: delivery?,
        on_fatal: on_fatal?,
        poison: poison?,
        http: http?,
    })
}

fn connector_class(reader: &mut Reader<'_>) {
    let remedy = format!("write connector.class={CONNECTOR}");
    match reader.required("connector.class", &remedy) {
        None | Some(CONNECTOR | "PostgresConnector") => {}
        Some(_) => {
            let what = format!(
                "the connector {} is not supported",
                reader.shown("connector.class")
            );
            reader.problem("connector.class", what, remedy);
        }
    }
}

fn sink(reader: &mut Reader<'_>) -> Option<SinkOptions> {
    #[derive(Clone, Copy)]
    enum Kind {
        Kafka,
        Stdout,
        Null,
    }
    let kinds = [
        ("kafka", Ok(Kind::Kafka)),
        ("stdout", Ok(Kind::Stdout)),
        ("null", Ok(Kind::Null)),
    ];
    match reader.choice("outboxd.sink.type", &kinds)? {
        Kind::Kafka => kafka::options(reader).map(SinkOptions::Kafka),
        Kind::Stdout => Some(SinkOptions::Stdout),
        Kind::Null => Some(SinkOptions::Null),
    }
}

fn delivery(reader: &mut Reader<'_>) -> Option<Delivery> {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    /// A queue that cannot be counted in 31 bits is a mistake, and Debezium's is a Java `int`.
    const MOST_EVENTS: u64 = 2_147_483_647;
    /// 24 MB of memory (rule R5).
    const MOST_REMEMBERED: u64 = 1_000_000;
    let events = reader.number("max.queue.size", 1..=MOST_EVENTS).map(count);
    let bytes = reader.number("max.queue.size.in.bytes", 0..=u64::MAX);
    let bytes = bytes
        .map(|bytes| {
            if bytes == 0 {
                DEFAULT_QUEUE_BYTES
            } else {
                bytes
            }
        })
        .map(count);
    let resume_transactions = reader
        .number("outboxd.resume.transactions", 0..=MOST_REMEMBERED)
        .map(count);
    let shutdown_timeout = reader.milliseconds("outboxd.shutdown.timeout.ms", 0);
    let server_shutdown_grace = reader.milliseconds("outboxd.server.shutdown.grace.ms", 0);
    let ready_max_unacknowledged = reader.milliseconds("outboxd.ready.max.unacknowledged.ms", 1);
    Some(Delivery {
        max_queue_size: events?,
        max_queue_bytes: bytes?,
        resume_transactions: resume_transactions?,
        shutdown_timeout: shutdown_timeout?,
        server_shutdown_grace: server_shutdown_grace?,
        ready_max_unacknowledged: ready_max_unacknowledged?,
    })
}

fn poison(reader: &mut Reader<'_>, topic_prefix: Option<&str>) -> Option<PoisonPolicy> {
    const TOPIC: &str = "outboxd.poison.topic";
    let policies = [("stop", Ok(false)), ("dead-letter", Ok(true))];
    if !reader.choice("outboxd.poison.policy", &policies)? {
        return Some(PoisonPolicy::Stop);
    }
    let name = match reader.text(TOPIC) {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => format!("{}.dead-letter", topic_prefix?),
    };
    match TopicName::new(name) {
        Ok(topic) => Some(PoisonPolicy::DeadLetter(topic)),
        Err(error) => {
            reader.unusable(TOPIC, &error, "name a topic");
            None
        }
    }
}

/// The outer `None` is a problem, the inner one a process without the endpoint.
fn http(reader: &mut Reader<'_>) -> Option<Option<Http>> {
    const PORT: &str = "outboxd.http.port";
    let host = reader.text("outboxd.http.host")?.to_owned();
    if reader.text(PORT)?.eq_ignore_ascii_case("off") {
        return Some(None);
    }
    let remedy = "write a port such as 8080, 0 for a free one, or off to run without metrics";
    let port = reader.parsed(PORT, remedy, str::parse::<u16>)?;
    Some(Some(Http { host, port }))
}
