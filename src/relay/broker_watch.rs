use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::sink::Probe;

/// How often it is looked whether the brokers are there.
const INTERVAL: Duration = Duration::from_secs(4);
/// The same where asking is costly: as seldom as a broker's silence may stay unnoticed.
const COSTLY_INTERVAL: Duration = Duration::from_secs(10);
/// How long they may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// What stands between the producer and the brokers, as last seen.
#[derive(Debug, Clone, Default)]
pub(super) struct BrokerTrouble(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    now: Mutex<Option<String>>,
    changed: Notify,
}

impl BrokerTrouble {
    /// Why no broker answers, if none does.
    pub(super) fn now(&self) -> Option<String> {
        let now = self.0.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.clone()
    }

    /// Waits until there is something new. Cancel-safe.
    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    fn set(&self, trouble: Option<String>) {
        let mut now = self.0.now.lock().unwrap_or_else(PoisonError::into_inner);
        if *now != trouble {
            *now = trouble;
            self.0.changed.notify_one();
        }
    }
}

/// Looks every few seconds whether the brokers answer, since without records to send nobody
/// would notice that they do not (rule R10). Runs until dropped.
pub(super) async fn watch_brokers(probe: Probe, trouble: BrokerTrouble) {
    loop {
        let begun = Instant::now();
        let asked = probe.clone();
        // The client's question blocks.
        let answer = tokio::task::spawn_blocking(move || asked.reachable(PATIENCE)).await;
        trouble.set(match answer {
            Ok(answer) => answer.err(),
            Err(_) => Some("asking the brokers failed".to_owned()),
        });
        let pause = match probe.is_costly() {
            true => COSTLY_INTERVAL,
            false => INTERVAL,
        };
        sleep_until(begun + pause).await;
    }
}
