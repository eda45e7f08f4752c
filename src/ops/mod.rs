//! What an operator watches: logs now; health and metrics will stand here too.

mod logging;

pub use logging::{LogFormat, init};
