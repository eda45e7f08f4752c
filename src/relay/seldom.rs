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

#[cfg(test)]
mod tests {
    use super::*;

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
