use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::sink::Probe;

/// How often the brokers are asked whether they are there.
const INTERVAL: Duration = Duration::from_secs(4);
/// How long they may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// A producer that does not find the brokers is given up when a new client has found them for
/// this long: three times the client's longest pause between two attempts.
const STUCK_AFTER: Duration = Duration::from_secs(30);

/// What stands between the producer and the brokers, as last seen.
#[derive(Debug, Clone, Default)]
pub(super) struct BrokerTrouble(Arc<Mutex<Option<String>>>);

impl BrokerTrouble {
    /// Why no broker answers, if none does.
    pub(super) fn now(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, trouble: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// Asks the brokers every few seconds whether they answer, since without records to send nobody
/// would notice that they do not (rule R10). Runs until dropped.
///
/// A client can lose them for ever: told by a broker just restarted or shut out for a moment that
/// there are no brokers, it forgets all it knew (librdkafka 2.10 to 2.13, issue 5301).
pub(super) async fn watch_brokers(probe: Probe, trouble: BrokerTrouble) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut lost_since = None;
    loop {
        ticks.tick().await;
        let asked = probe.clone();
        // The client's questions block.
        let answer = tokio::task::spawn_blocking(move || {
            let why = asked.reachable(PATIENCE).err()?;
            Some((why, asked.reachable_anew(PATIENCE)))
        })
        .await;
        let (why, is_lost) = match answer {
            Ok(None) => (None, false),
            Ok(Some((why, is_there))) => (Some(why), is_there),
            Err(_) => (Some("asking the brokers failed".to_owned()), false),
        };
        trouble.set(why);
        if !is_lost {
            lost_since = None;
        } else if lost_since.get_or_insert_with(Instant::now).elapsed() >= STUCK_AFTER {
            probe.give_up();
            return;
        }
    }
}
