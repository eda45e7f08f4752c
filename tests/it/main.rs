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
mod configuration;
mod first_start;
mod golden;
mod log_positions;
mod memory;
mod proxy;
mod restarts;
mod routing;
mod shutdown;
mod sinks;
mod sql_files;
mod text_forms;
mod tls;
