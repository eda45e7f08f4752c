//! The real binary against a real PostgreSQL and a real Kafka, one file a promise.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and prints what it measured"
)]

#[path = "../support/mod.rs"]
mod support;

mod acknowledging;
mod architecture;
mod broker_away;
mod chaos;
mod check;
mod configuration;
mod connecting;
mod coverage;
mod crashes;
mod decoding;
mod faults;
mod first_start;
mod foundations;
mod golden;
mod health;
mod idle_outbox;
mod kafka_tls;
mod log_positions;
mod logins;
mod logs;
mod memory;
mod metrics;
mod missing_topic;
mod poison;
mod positions;
mod probing;
mod proxy;
mod reconnecting;
mod refusals;
mod restarts;
mod resuming;
mod rights;
mod routing;
mod schema_change;
mod server_shutdown;
mod setup;
mod shutdown;
mod silence;
mod sinks;
mod skip;
mod sql_files;
mod status;
mod text_forms;
mod tls;
