//! The relay: one task per connector that reads, decodes, routes, converts and enqueues,
//! and confirms to the server what the broker has acknowledged.
//!
//! [`run`] supervises attempts; an attempt prepares publication and slot (`prepare`), then
//! runs the `pipeline` until it is stopped or something breaks. The rule the product exists
//! for, confirm after acknowledgement, lives in `ack`.

pub mod ack;
mod backoff;
mod batches;
mod broker_watch;
mod delivery;
mod error;
mod failpoint;
mod farewell;
mod feedback;
pub mod findings;
mod handover;
mod obstacle;
mod pipeline;
mod poison;
mod position;
mod prepare;
mod resume;
mod seldom;
mod skip;
mod stop;
mod supervise;
mod translate;
mod upstream;
mod watch;

pub use error::{RelayError, RunError};
pub use skip::{Skip, SkipError, skip};
pub use stop::Stop;
pub use supervise::run;
