use std::time::Duration;

use tokio::time::Instant;

use crate::model::ConfirmedLsn;

/// Decides when a position is reported to the server (rules R1 and R5).
///
/// A report goes out when the confirmed position moved, when the server asked for one, and at
/// the latest after `interval`, so that the server does not think us dead while the broker
/// keeps us waiting.
#[derive(Debug)]
pub(super) struct Feedback {
    interval: Duration,
    reported: ConfirmedLsn,
    reported_at: Instant,
    asked: bool,
}

impl Feedback {
    /// A moving position is reported at most this often: often enough that a crash repeats
    /// little, seldom enough to cost nothing.
    const MOVED_PAUSE: Duration = Duration::from_millis(5);
    /// A server that is shutting down asks thousands of times a second.
    const ASKED_PAUSE: Duration = Duration::from_millis(10);

    /// Nothing reported yet on this connection.
    pub(super) fn new(interval: Duration, now: Instant) -> Self {
        Self {
            interval,
            reported: ConfirmedLsn::NONE,
            reported_at: now,
            asked: false,
        }
    }

    /// Even an idle relay does something this often, so that a standstill can be told from
    /// idleness (rule R10).
    const LONGEST: Duration = Duration::from_secs(10);

    /// The interval that keeps the session alive: `wanted`, but at most a quarter of the
    /// session's `wal_sender_timeout`, and 10 s.
    pub(super) fn interval(wanted: Duration, wal_sender_timeout: Duration) -> Duration {
        wanted
            .min(wal_sender_timeout / 4)
            .min(Self::LONGEST)
            .max(Self::ASKED_PAUSE)
    }

    /// The server asked for an answer.
    pub(super) fn asked(&mut self) {
        self.asked = true;
    }

    /// When the next report is due, given the position that is confirmed now.
    pub(super) fn due_at(&self, confirmed: ConfirmedLsn) -> Instant {
        let pause = if confirmed > self.reported {
            Self::MOVED_PAUSE
        } else if self.asked {
            Self::ASKED_PAUSE
        } else {
            self.interval
        };
        self.reported_at + pause
    }

    /// The position to report now: never below the last one reported on this connection.
    pub(super) fn report(&mut self, confirmed: ConfirmedLsn, now: Instant) -> ConfirmedLsn {
        self.reported = self.reported.max(confirmed);
        self.reported_at = now;
        self.asked = false;
        self.reported
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Lsn;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(offset: u64) -> ConfirmedLsn {
        ConfirmedLsn::everything_before(Lsn::new(offset))
    }

    #[test]
    fn reports_soon_when_moved_later_when_asked_and_at_last_anyway() {
        let start = Instant::now();
        let mut feedback = Feedback::new(10 * SECOND, start);
        assert_eq!(feedback.due_at(ConfirmedLsn::NONE), start + 10 * SECOND);
        assert_eq!(feedback.due_at(at(5)), start + Feedback::MOVED_PAUSE);
        feedback.asked();
        assert_eq!(
            feedback.due_at(ConfirmedLsn::NONE),
            start + Feedback::ASKED_PAUSE
        );
        assert_eq!(feedback.report(at(5), start + SECOND), at(5));
        assert_eq!(feedback.due_at(at(5)), start + 11 * SECOND);
    }

    #[test]
    fn a_position_never_goes_back() {
        let start = Instant::now();
        let mut feedback = Feedback::new(SECOND, start);
        feedback.report(at(9), start);
        assert_eq!(feedback.report(at(3), start), at(9));
    }

    #[test]
    fn the_session_is_kept_alive_whatever_was_wanted() {
        assert_eq!(Feedback::interval(10 * SECOND, 60 * SECOND), 10 * SECOND);
        assert_eq!(Feedback::interval(30 * SECOND, 8 * SECOND), 2 * SECOND);
        assert_eq!(Feedback::interval(90 * SECOND, 600 * SECOND), 10 * SECOND);
    }
}
