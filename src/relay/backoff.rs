use std::time::Duration;

use crate::sink::Pause;

/// Waiting times between attempts: doubled each time up to a cap, with jitter so that many
/// relays do not come back in step.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    /// Short, because after a crash the server frees the slot within milliseconds.
    const FIRST: Duration = Duration::from_millis(50);
    const CAP: Duration = Duration::from_secs(30);
    /// Where more than a moment is needed, at least this.
    const LONG: Duration = Duration::from_secs(5);

    pub(super) fn new() -> Self {
        Self { next: Self::FIRST }
    }

    /// The next waiting time.
    pub(super) fn next(&mut self, pause: Pause) -> Duration {
        let now = match pause {
            Pause::Short => self.next,
            Pause::Long => self.next.max(Self::LONG),
        };
        self.next = (now * 2).min(Self::CAP);
        // Between 75 and 100 per cent.
        now.mul_f64(0.75 + fastrand::f64() / 4.0)
    }

    /// Begins anew with short waits, after something worked.
    pub(super) fn reset(&mut self) {
        self.next = Self::FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_the_cap_and_begins_anew() {
        let mut backoff = Backoff::new();
        let waits: Vec<Duration> = (0..20).map(|_| backoff.next(Pause::Short)).collect();
        assert!(waits.iter().all(|wait| *wait <= Backoff::CAP));
        assert!(waits[19] >= Backoff::CAP.mul_f64(0.75));
        assert!(waits[0] <= Backoff::FIRST && waits[3] > waits[0]);
        backoff.reset();
        assert!(backoff.next(Pause::Short) <= Backoff::FIRST);
    }

    #[test]
    fn a_long_pause_is_long_from_the_first_time_on() {
        let mut backoff = Backoff::new();
        assert!(backoff.next(Pause::Long) >= Backoff::LONG.mul_f64(0.75));
        assert!(backoff.next(Pause::Short) > Backoff::LONG);
    }
}
