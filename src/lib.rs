//! outboxd delivers transactional outboxes: it tails PostgreSQL's write-ahead log through a
//! logical replication slot, routes every outbox insert as Debezium's Outbox Event Router
//! would, produces it to Kafka, and **moves the slot only after the broker acknowledged
//! everything before it**.
//!
//! # Layout
//! In the order data flows; positions flow back the same way.
//!
//! - [`source`]: the log's changes as rows, and confirmed positions back to the server.
//! - [`router`]: which row goes to which topic, under which key, with which headers.
//! - [`convert`]: values as Kafka Connect's converters would write them.
//! - [`sink`]: records to the broker, and its acknowledgements back.
//! - [`relay`]: ties the four together; decides what may be confirmed.
//! - [`config`]: from files and flags to one typed configuration.
//! - [`ops`]: what an operator watches.
//! - [`cli`]: the commands.
//! - [`model`]: the words all of them share.
//!
//! Who may import whom, and the delivery rules with the file that keeps each, stand in
//! ARCHITECTURE.md; `tests/it/architecture.rs` holds the former.

pub mod cli;
pub mod config;
pub mod convert;
pub mod model;
pub mod ops;
pub mod relay;
pub mod router;
pub mod sink;
pub mod source;
