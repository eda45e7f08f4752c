use super::error::{RelayError, RunError};
use super::stop::Stop;
use super::supervise::{Connector, supervise};
use crate::config::Config;
use crate::model::Lsn;
use crate::ops;
use crate::source::postgres::Database;

/// One event to be passed over for good, named as the error about it names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// The commit position of its transaction.
    pub lsn: Lsn,
    /// Its id as text.
    pub event: String,
    /// Why, for the log.
    pub reason: String,
}

/// There is nothing to pass over. What came before is delivered as ever, and nothing is skipped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkipError {
    /// The slot does not exist.
    #[error("replication slot {slot} does not exist, so nothing holds anything up")]
    NoSlot {
        /// The slot.
        slot: String,
    },
    /// The slot is behind the event already.
    #[error(
        "the slot is confirmed up to {confirmed}, past the transaction that commits at {lsn}: its events are delivered or passed over already"
    )]
    Confirmed {
        /// What was asked for.
        lsn: Lsn,
        /// Where the slot stands.
        confirmed: Lsn,
    },
    /// No transaction commits there.
    #[error(
        "no transaction with rows of the publication commits at {lsn}; take position and id from the error about the event"
    )]
    NoTransaction {
        /// What was asked for.
        lsn: Lsn,
    },
    /// The transaction has no such event.
    #[error(
        "the transaction that commits at {lsn} has no event {event} in any outbox table; take position and id from the error about the event"
    )]
    NoEvent {
        /// What was asked for.
        lsn: Lsn,
        /// What was asked for.
        event: String,
    },
}

/// Delivers what comes before one event, passes over the event, and ends when its transaction is
/// confirmed. Whether that was done: it is not when a stop was asked for before.
///
/// # Errors
/// As [`run`](super::run) with `outboxd.on.fatal=exit`; also when there is no such event.
pub async fn skip(
    config: &Config,
    stop: &Stop,
    told: &ops::Connector,
    wanted: Skip,
) -> Result<bool, RunError> {
    is_pending(config, &wanted)
        .await
        .map_err(RunError::Preflight)?;
    let skipping = Some(Skipping::new(wanted));
    let connector = supervise(Connector::new(config, stop, told, skipping)).await?;
    Ok(connector.has_skipped())
}

/// Looks whether the slot has yet to come to the event.
async fn is_pending(config: &Config, wanted: &Skip) -> Result<(), RelayError> {
    let database = Database::connect(&config.source).await?;
    let slot = database.slot_facts(&config.source.slot).await?;
    let Some(slot) = slot else {
        return Err(RelayError::Skip(SkipError::NoSlot {
            slot: config.source.slot.to_string(),
        }));
    };
    match slot.confirmed_flush_lsn {
        Some(confirmed) if confirmed > wanted.lsn => Err(RelayError::Skip(SkipError::Confirmed {
            lsn: wanted.lsn,
            confirmed,
        })),
        _ => Ok(()),
    }
}

/// How far passing over one event is. It survives lost connections and producers, and the
/// event comes again until its transaction is confirmed.
#[derive(Debug)]
pub(super) struct Skipping {
    wanted: Skip,
    is_found: bool,
    is_done: bool,
}

impl Skipping {
    pub(super) fn new(wanted: Skip) -> Self {
        Self {
            wanted,
            is_found: false,
            is_done: false,
        }
    }

    /// Whether the event was passed over and its transaction is complete.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether this event is passed over, and why.
    pub(super) fn passes_over(&mut self, lsn: Lsn, event: &str) -> Option<&str> {
        let is_it = lsn == self.wanted.lsn && event == self.wanted.event;
        self.is_found |= is_it;
        is_it.then_some(self.wanted.reason.as_str())
    }

    /// The transaction that commits at `lsn` is complete.
    pub(super) fn committed(&mut self, lsn: Lsn) -> Result<(), SkipError> {
        if lsn == self.wanted.lsn && !self.is_found {
            return Err(SkipError::NoEvent {
                lsn,
                event: self.wanted.event.clone(),
            });
        }
        self.is_done |= lsn == self.wanted.lsn;
        Ok(())
    }

    /// Nothing that commits before `position` comes any more.
    pub(super) fn passed(&mut self, position: Lsn) -> Result<(), SkipError> {
        if position <= self.wanted.lsn {
            return Ok(());
        }
        // Found and confirmed on a connection that broke right then.
        self.is_done |= self.is_found;
        match self.is_done {
            true => Ok(()),
            false => Err(SkipError::NoTransaction {
                lsn: self.wanted.lsn,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipping() -> Skipping {
        Skipping::new(Skip {
            lsn: Lsn::new(100),
            event: "e".to_owned(),
            reason: "why".to_owned(),
        })
    }

    #[test]
    fn only_the_event_that_was_named_is_passed_over_and_its_commit_ends_it() {
        let mut skipping = skipping();
        assert_eq!(skipping.passed(Lsn::new(90)), Ok(()));
        assert_eq!(skipping.passes_over(Lsn::new(90), "e"), None);
        assert_eq!(skipping.committed(Lsn::new(90)), Ok(()));
        assert_eq!(skipping.passed(Lsn::new(100)), Ok(()));
        assert_eq!(skipping.passes_over(Lsn::new(100), "d"), None);
        assert_eq!(skipping.passes_over(Lsn::new(100), "e"), Some("why"));
        assert!(!skipping.is_done(), "the rest of its transaction comes");
        // The producer was given up, and all of it comes again.
        assert_eq!(skipping.passes_over(Lsn::new(100), "e"), Some("why"));
        assert_eq!(skipping.committed(Lsn::new(100)), Ok(()));
        assert!(skipping.is_done());
    }

    #[test]
    fn what_is_not_there_is_said_and_never_waited_for() {
        let no_transaction = Err(SkipError::NoTransaction { lsn: Lsn::new(100) });
        assert_eq!(skipping().passed(Lsn::new(101)), no_transaction);
        let no_event = Err(SkipError::NoEvent {
            lsn: Lsn::new(100),
            event: "e".to_owned(),
        });
        let mut skipping = skipping();
        assert_eq!(skipping.passes_over(Lsn::new(100), "d"), None);
        assert_eq!(skipping.committed(Lsn::new(100)), no_event);
    }

    #[test]
    fn what_was_confirmed_as_the_connection_broke_is_done() {
        let mut skipping = skipping();
        assert!(skipping.passes_over(Lsn::new(100), "e").is_some());
        assert_eq!(skipping.passed(Lsn::new(150)), Ok(()));
        assert!(skipping.is_done());
    }
}
