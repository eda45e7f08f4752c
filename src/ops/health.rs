use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How far a connector is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is known yet.
    Starting,
    /// Something outside has to come back or to be set right; it is tried again.
    Waiting(String),
    /// Connected, and delivering what comes.
    Streaming,
    /// Connected, but nothing can be delivered now.
    Degraded(String),
    /// Only a person can mend it.
    Failed(String),
}

impl State {
    /// The state as one word.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Waiting(_) => "waiting",
            Self::Streaming => "streaming",
            Self::Degraded(_) => "degraded",
            Self::Failed(_) => "failed",
        }
    }
}

/// What is known of one connector's health (rule R10). Whatever stands still goes red here
/// without its doing: ages are told by the reader's clock.
#[derive(Debug)]
pub(super) struct Health {
    begun: Instant,
    /// Milliseconds after `begun` at which the relay's loop last turned.
    turned: AtomicU64,
    /// Milliseconds after `begun` at which the oldest unacknowledged event was handed to the
    /// sink; `NONE` when there is none.
    oldest: AtomicU64,
    state: Mutex<State>,
    max_unacknowledged: Duration,
}

const NONE: u64 = u64::MAX;

impl Health {
    /// A relay's loop, also a waiting one, turns at least every few seconds. Past this it
    /// stands still, and a restart may help.
    const STANDSTILL: Duration = Duration::from_secs(30);

    pub(super) fn new(max_unacknowledged: Duration, now: Instant) -> Self {
        Self {
            begun: now,
            turned: AtomicU64::new(0),
            oldest: AtomicU64::new(NONE),
            state: Mutex::new(State::Starting),
            max_unacknowledged,
        }
    }

    pub(super) fn turned(&self, now: Instant) {
        self.turned.store(self.millis(now), Ordering::Relaxed);
    }

    pub(super) fn oldest_unacknowledged(&self, since: Option<Instant>) {
        let since = since.map_or(NONE, |since| self.millis(since));
        self.oldest.store(since, Ordering::Relaxed);
    }

    /// Passes from one state to the next; `next` sees the one that holds.
    pub(super) fn change(&self, next: impl FnOnce(&State) -> Option<State>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(next) = next(&state) {
            *state = next;
        }
    }

    pub(super) fn state(&self) -> State {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clone()
    }

    /// How long the oldest unacknowledged event has been waiting.
    pub(super) fn oldest_age(&self, now: Instant) -> Option<Duration> {
        let since = self.oldest.load(Ordering::Relaxed);
        (since != NONE).then(|| self.since(since, now))
    }

    /// Whether the loop turns.
    ///
    /// # Errors
    /// The reason why it counts as standing still.
    pub(super) fn live(&self, now: Instant) -> Result<(), String> {
        let age = self.since(self.turned.load(Ordering::Relaxed), now);
        if age <= Self::STANDSTILL {
            return Ok(());
        }
        Err(format!("the relay has stood still for {} s", age.as_secs()))
    }

    /// Whether events are being delivered.
    ///
    /// # Errors
    /// The reason why not.
    pub(super) fn ready(&self, now: Instant) -> Result<(), String> {
        self.live(now)?;
        match self.state() {
            State::Streaming => {}
            State::Starting => return Err("starting".to_owned()),
            State::Waiting(why) | State::Degraded(why) | State::Failed(why) => return Err(why),
        }
        match self.oldest_age(now) {
            Some(age) if age > self.max_unacknowledged => Err(format!(
                "the broker has not acknowledged the oldest event for {} s (outboxd.ready.max.unacknowledged.ms is {})",
                age.as_secs(),
                self.max_unacknowledged.as_millis()
            )),
            _ => Ok(()),
        }
    }

    fn millis(&self, at: Instant) -> u64 {
        let millis = at.saturating_duration_since(self.begun).as_millis();
        u64::try_from(millis).unwrap_or(NONE - 1)
    }

    fn since(&self, millis: u64, now: Instant) -> Duration {
        Duration::from_millis(self.millis(now).saturating_sub(millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn ready_only_while_streaming() {
        let now = Instant::now();
        let health = Health::new(10 * SECOND, now);
        for (state, ready) in [
            (State::Starting, Err("starting")),
            (State::Waiting("no route".into()), Err("no route")),
            (State::Degraded("broker away".into()), Err("broker away")),
            (State::Failed("slot lost".into()), Err("slot lost")),
            (State::Streaming, Ok(())),
        ] {
            health.change(|_| Some(state));
            assert_eq!(health.ready(now), ready.map_err(str::to_owned));
            assert_eq!(health.live(now), Ok(()));
        }
    }

    #[test]
    fn an_old_unacknowledged_event_is_not_ready_until_it_is_acknowledged() {
        let now = Instant::now();
        let health = Health::new(10 * SECOND, now);
        health.change(|_| Some(State::Streaming));
        health.oldest_unacknowledged(Some(now + SECOND));
        assert_eq!(health.ready(now + 11 * SECOND), Ok(()));
        let late = now + 12 * SECOND;
        assert_eq!(health.oldest_age(late), Some(11 * SECOND));
        let why = health.ready(late).expect_err("too old");
        assert!(why.contains("11 s") && why.contains("10000"), "{why}");
        assert_eq!(health.live(late), Ok(()));
        health.oldest_unacknowledged(None);
        assert_eq!(health.ready(late), Ok(()));
    }

    #[test]
    fn a_loop_that_stands_still_is_neither_live_nor_ready() {
        let now = Instant::now();
        let health = Health::new(10 * SECOND, now);
        health.change(|_| Some(State::Streaming));
        health.turned(now + 5 * SECOND);
        assert_eq!(health.live(now + 35 * SECOND), Ok(()));
        let still = now + 36 * SECOND;
        assert!(health.live(still).is_err() && health.ready(still).is_err());
        health.turned(still);
        assert_eq!(health.ready(still), Ok(()));
    }
}
