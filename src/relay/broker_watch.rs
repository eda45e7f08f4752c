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
/// A producer that does not find the brokers is given up when a new client has found them for
/// this long: three times the client's longest pause between two attempts.
const STUCK_AFTER: Duration = Duration::from_secs(30);

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
///
/// A client can lose them for ever: told by a broker just restarted or shut out for a moment that
/// there are no brokers, it forgets all it knew (librdkafka 2.10 to 2.13, issue 5301).
pub(super) async fn watch_brokers(probe: Probe, trouble: BrokerTrouble) {
    let mut lost_since = None;
    loop {
        let begun = Instant::now();
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
        let pause = match probe.is_costly() {
            true => COSTLY_INTERVAL,
            false => INTERVAL,
        };
        sleep_until(begun + pause).await;
    }
}
