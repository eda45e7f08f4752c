use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::sink::Probe;

/// How often the brokers are asked whether they are there.
const INTERVAL: Duration = Duration::from_secs(4);
/// How long they may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

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
pub(super) async fn watch_brokers(probe: Probe, trouble: BrokerTrouble) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let asked = probe.clone();
        // The client's question blocks.
        let answer = tokio::task::spawn_blocking(move || asked.reachable(PATIENCE)).await;
        trouble.set(match answer {
            Ok(answer) => answer.err(),
            Err(_) => Some("asking the brokers failed".to_owned()),
        });
    }
}
