use std::time::Instant;

use super::findings::Shapes;
use super::seldom::Seldom;
use crate::ops::Connector;

/// What stands against delivery while the slot is read: told to whoever asks for health, and
/// said in the log when it comes and when it goes, and seldom when only its reason changes.
pub(super) struct Obstacle<'c> {
    connector: &'c Connector,
    shapes: &'c Shapes,
    now: Option<String>,
    reasons: Seldom,
}

impl<'c> Obstacle<'c> {
    /// `known` was said already, on an earlier stream.
    pub(super) fn new(connector: &'c Connector, shapes: &'c Shapes, known: Option<String>) -> Self {
        let now = known.or_else(|| shapes.standing());
        if let Some(why) = &now {
            connector.degraded(why);
        }
        Self {
            connector,
            shapes,
            now,
            reasons: Seldom::default(),
        }
    }

    /// What trouble there is now. Where there is none, the shape of a table may still be one;
    /// that is said by whoever saw it.
    pub(super) fn is(&mut self, trouble: Option<String>) {
        let is_trouble = trouble.is_some();
        let now = trouble.or_else(|| self.shapes.standing());
        if now == self.now {
            return;
        }
        match &now {
            Some(why) => {
                let is_due = is_trouble && self.reasons.due(Instant::now()).is_some();
                if is_due || is_trouble && self.now.is_none() {
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
