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

mod architecture;
mod broker_away;
mod chaos;
mod check;
mod configuration;
mod connecting;
mod crashes;
mod faults;
mod first_start;
mod foundations;
mod golden;
mod health;
mod idle_outbox;
mod log_positions;
mod logins;
mod logs;
mod memory;
mod metrics;
mod poison;
mod positions;
mod probing;
mod proxy;
mod reconnecting;
mod refusals;
mod restarts;
mod rights;
mod routing;
mod server_shutdown;
mod setup;
mod shutdown;
mod sinks;
mod skip;
mod sql_files;
mod status;
mod text_forms;
mod tls;
