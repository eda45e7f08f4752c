use std::time::{Duration, Instant};

/// Keeps a message that every event could cause from filling the log: the first is said, then
/// at most one a minute, with the number of those that were not.
#[derive(Debug, Default)]
pub(super) struct Seldom {
    last: Option<Instant>,
    unsaid: u64,
}

impl Seldom {
    const PAUSE: Duration = Duration::from_secs(60);

    /// Whether to say it at `now`; if so, how many came since it was last said, this one
    /// included.
    pub(super) fn due(&mut self, now: Instant) -> Option<u64> {
        self.unsaid += 1;
        let paused = self
            .last
            .is_some_and(|last| now.saturating_duration_since(last) < Self::PAUSE);
        if paused {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }
}

/// The same for messages that differ: a new one is said, one that repeats itself is seldom.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: Option<String>,
    seldom: Seldom,
}

impl Repeats {
    /// Whether to say `message` at `now`.
    pub(super) fn is_due(&mut self, message: &str, now: Instant) -> bool {
        if self.last.as_deref() != Some(message) {
            *self = Self {
                last: Some(message.to_owned()),
                seldom: Seldom::default(),
            };
        }
        self.seldom.due(now).is_some()
    }

    /// What is said next is new, whatever it is.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_itself_is_said_once_a_minute_and_what_is_new_at_once() {
        let start = Instant::now();
        let mut repeats = Repeats::default();
        assert!(repeats.is_due("refused", start));
        assert!(!repeats.is_due("refused", start + Duration::from_secs(59)));
        assert!(repeats.is_due("refused", start + Duration::from_secs(60)));
        assert!(repeats.is_due("reset", start + Duration::from_secs(61)));
        repeats.forget();
        assert!(repeats.is_due("reset", start + Duration::from_secs(62)));
    }

    #[test]
    fn says_the_first_and_then_one_a_minute_with_a_count() {
        let start = Instant::now();
        let mut seldom = Seldom::default();
        assert_eq!(seldom.due(start), Some(1));
        assert_eq!(seldom.due(start + Duration::from_secs(1)), None);
        assert_eq!(seldom.due(start + Duration::from_secs(59)), None);
        assert_eq!(seldom.due(start + Duration::from_secs(60)), Some(3));
    }
}
