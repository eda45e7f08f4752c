//! What an operator watches: logs, metrics and health.
//!
//! The relay tells a [`Connector`] what happened, in its own words; a [`Monitor`] knows all
//! connectors of the process and says what `/metrics`, `/health/live` and `/health/ready`
//! answer; the [`Server`] answers. Nothing here holds the relay up: telling costs a few atomic
//! operations, and whoever asks reads them.

mod connector;
mod health;
mod http;
mod logging;
mod metrics;
mod monitor;

pub use connector::Connector;
pub use http::{ListenError, Server};
pub use logging::{LogFormat, init};
pub use monitor::{Answer, Monitor};
