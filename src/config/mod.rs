//! From files and flags to one typed [`Config`], in two stages.
//!
//! 1. *Raw*: the connector's file (Kafka Connect JSON or `.properties`), the Connect worker's
//!    properties and `--set` become one ordered map from key to text, each with its [`Origin`];
//!    then config providers (`${file:…}`, `${dir:…}`, `${env:…}`) are replaced.
//! 2. *Resolved*: every key is looked up in the one table of [`OPTIONS`], and the texts become
//!    the types that the other modules take.
//!
//! All problems are reported at once, each with its origin and its remedy. Nothing but files is
//! read: no network.

mod check;
mod json;
mod options;
mod origin;
#[doc(hidden)] // open to tests/fuzz alone
pub mod properties;
mod provider;
mod raw;
mod reader;
mod report;
mod resolve;
mod suggest;
#[cfg(test)]
mod tests;
mod transforms;

use std::fmt;
use std::path::Path;
use std::time::Duration;

pub use options::{KnownOption, OPTIONS, Section, Status};
pub use origin::{Layer, Origin};
pub use report::{ConfigErrors, Finding};

use crate::model::TopicName;
use crate::sink::SinkOptions;
use crate::source::postgres::SourceOptions;
use crate::{convert, router};
use raw::RawConfig;
use report::Report;

/// One connector's configuration, valid as far as can be told without a connection.
#[derive(Clone)]
pub struct Config {
    /// The connector's name (`name`), else its file's without the extension.
    pub name: String,
    /// Where events come from.
    pub source: SourceOptions,
    /// How they are routed.
    pub router: router::Options,
    /// How they become bytes.
    pub convert: convert::Options,
    /// What Debezium's context headers say; `None` sends none (`extended.headers.enabled`).
    pub context_headers: Option<ContextHeaders>,
    /// The logical name of the source (`topic.prefix`).
    pub topic_prefix: String,
    /// Where records go.
    pub sink: SinkOptions,
    /// What bounds the way between.
    pub delivery: Delivery,
    /// What happens after a failure that only a person can mend (`outboxd.on.fatal`; rule R9).
    pub on_fatal: OnFatal,
    /// Whether each record says where its event stands in the log (`outboxd.position.headers`).
    pub position_headers: bool,
    /// What happens to an event that can never be sent as it is.
    pub poison: PoisonPolicy,
    /// Where metrics and health are answered; `None` with `outboxd.http.port=off`.
    pub http: Option<Http>,
}

/// Where metrics and health are answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Address or name of this machine (`outboxd.http.host`, 127.0.0.1).
    pub host: String,
    /// TCP port; 0 takes a free one (`outboxd.http.port`, 8080).
    pub port: u16,
}

/// What Debezium's context headers (`__debezium.context.*`) say that is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextHeaders {
    /// `connectorLogicalName`: `topic.prefix`.
    pub logical_name: String,
}

/// `outboxd.on.fatal`, for failures after the first event could have been streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFatal {
    /// The process stays up, failed, and looks again every 30 s whether the cause is gone.
    Stay,
    /// The process ends with code 1.
    Exit,
}

/// `outboxd.poison.policy`: what happens to an event that can never be sent as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoisonPolicy {
    /// It holds up everything behind it until its cause is mended.
    Stop,
    /// It goes to this topic (`outboxd.poison.topic`) with what stood against it.
    DeadLetter(TopicName),
}

/// Bounds on what is between database and broker (rule R5), and how long a stop waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Most events in flight (`max.queue.size`, 8192).
    pub max_queue_size: usize,
    /// Most bytes in flight (`max.queue.size.in.bytes`; absent or 0: 64 MiB).
    pub max_queue_bytes: usize,
    /// How many transactions handed over are recognised when they come again after a lost
    /// connection (`outboxd.resume.transactions`, 65,536; 0 for none; rule R4).
    pub resume_transactions: usize,
    /// How long a stop waits for what is in flight (`outboxd.shutdown.timeout.ms`, 10 s).
    pub shutdown_timeout: Duration,
    /// How long a database server that shuts down is held up for what is in flight
    /// (`outboxd.server.shutdown.grace.ms`, 5 s; rule R11).
    pub server_shutdown_grace: Duration,
    /// An event that waits longer for its acknowledgement makes the connector not ready
    /// (`outboxd.ready.max.unacknowledged.ms`, 10 s).
    pub ready_max_unacknowledged: Duration,
}

/// What [`load`] gives.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What is written and does not do what it says, sorted by origin.
    pub warnings: Vec<Finding>,
}

/// Shows no value: any of them can come from a config provider.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").finish_non_exhaustive()
    }
}

impl Config {
    /// Which converters are in force, in one line.
    pub fn converters(&self) -> String {
        let convert::Options { key, value, header } = &self.convert;
        format!("key: {key}; value: {value}; headers: {header}")
    }
}

/// Reads one connector: its file, what the Connect worker had, and `--set` arguments
/// (`key=value`), each over the one before. `environment` looks up what `${env:NAME}` names.
///
/// # Errors
/// Everything that is wrong, at once; see [`ConfigErrors`].
pub fn load(
    connector: &Path,
    worker: Option<&Path>,
    overrides: &[String],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, ConfigErrors> {
    let mut report = Report::default();
    let config = read(connector, worker, overrides, environment, &mut report);
    let (config, warnings) = report.finish(config)?;
    Ok(Loaded { config, warnings })
}

fn read(
    connector: &Path,
    worker: Option<&Path>,
    overrides: &[String],
    environment: &dyn Fn(&str) -> Option<String>,
    report: &mut Report,
) -> Option<Config> {
    let worker_file = worker.map(|worker| raw::read_file(worker, Layer::Worker, report));
    let connector_file = raw::read_file(connector, Layer::Connector, report);
    // What was typed for this one run wins over what is always there.
    let mut set = raw::read_variables(environment);
    set.extend(raw::read_overrides(overrides, report));
    // Without one of its files everything would be missing.
    let worker_file = match worker_file {
        Some(None) => return None,
        Some(given) => given,
        None => None,
    };
    let mut raw = RawConfig::layered(worker_file, connector, connector_file?, set, report);
    provider::resolve(&mut raw, environment, report);
    let file_name = connector.file_stem().unwrap_or_default().to_string_lossy();
    resolve::resolve(&raw, &file_name, report)
}
