use std::time::Instant;

use super::seldom::Seldom;
use crate::ops::Connector;

/// What stands against delivery while the slot is read: told to whoever asks for health, and
/// said in the log when it comes and when it goes, and seldom when only its reason changes.
pub(super) struct Obstacle<'c> {
    connector: &'c Connector,
    now: Option<String>,
    reasons: Seldom,
}

impl<'c> Obstacle<'c> {
    /// `known` was said already, on an earlier stream.
    pub(super) fn new(connector: &'c Connector, known: Option<String>) -> Self {
        if let Some(why) = &known {
            connector.degraded(why);
        }
        Self {
            connector,
            now: known,
            reasons: Seldom::default(),
        }
    }

    /// What it is now.
    pub(super) fn is(&mut self, now: Option<String>) {
        if now == self.now {
            return;
        }
        match &now {
            Some(why) => {
                let is_due = self.reasons.due(Instant::now()).is_some();
                if is_due || self.now.is_none() {
                    tracing::warn!("Not delivering: {why}.");
                }
                self.connector.degraded(why);
            }
            None => {
                tracing::info!("Delivering again.");
                self.connector.delivering();
            }
        }
        self.now = now;
    }
}
