use std::time::Duration;

use tokio::time::Instant;

use crate::model::{ConfirmedLsn, Lsn};

/// Decides when a position is reported to the server, and which (rules R1 and R5).
///
/// A report goes out when the confirmed position moved, when the server asked for one, and at
/// the latest after the interval, so that the server does not think us dead while the broker
/// keeps us waiting. When the server has been quiet for a while, the report asks it for an
/// answer, so that a connection that died without a word is noticed (rule R10).
#[derive(Debug)]
pub(super) struct Feedback {
    interval: Duration,
    reported: ConfirmedLsn,
    reported_at: Instant,
    asked: bool,
    /// The highest COMMIT end or keepalive position received on this connection.
    received: Lsn,
    /// When the server was last heard.
    heard_at: Instant,
}

/// What to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Report {
    /// Never below the last one, never above what was received on this connection.
    pub(super) position: ConfirmedLsn,
    /// Whether the server shall answer.
    pub(super) reply_requested: bool,
}

impl Feedback {
    /// A moving position is reported at most this often: often enough that a crash repeats
    /// little, seldom enough to cost nothing.
    const MOVED_PAUSE: Duration = Duration::from_millis(5);
    /// A server that is shutting down asks thousands of times a second.
    const ASKED_PAUSE: Duration = Duration::from_millis(10);
    /// A server that said nothing for this long is asked whether it is there.
    const QUIET: Duration = Duration::from_secs(4);
    /// Often enough to ask a quiet server in time.
    const LONGEST_INTERVAL: Duration = Duration::from_secs(5);

    /// Nothing reported yet on this connection.
    pub(super) fn new(interval: Duration, now: Instant) -> Self {
        Self {
            interval,
            reported: ConfirmedLsn::NONE,
            reported_at: now,
            asked: false,
            received: Lsn::ZERO,
            heard_at: now,
        }
    }

    /// The interval that keeps the session alive: `wanted`, but at most a quarter of the
    /// session's `wal_sender_timeout`, and 5 s, so that a quiet server is asked in time.
    pub(super) fn interval(wanted: Duration, wal_sender_timeout: Duration) -> Duration {
        wanted
            .min(wal_sender_timeout / 4)
            .min(Self::LONGEST_INTERVAL)
            .max(Self::ASKED_PAUSE)
    }

    /// The server asked for an answer.
    pub(super) fn asked(&mut self) {
        self.asked = true;
    }

    /// A COMMIT or a keepalive told this position.
    pub(super) fn received(&mut self, position: Lsn) {
        self.received = self.received.max(position);
    }

    /// The server said something, or nobody was listening until now.
    pub(super) fn heard(&mut self, now: Instant) {
        self.heard_at = now;
    }

    /// For how long the server has said nothing.
    pub(super) fn quiet_for(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.heard_at)
    }

    /// When the next report is due, given the position that is confirmed now.
    pub(super) fn due_at(&self, confirmed: ConfirmedLsn) -> Instant {
        let pause = if confirmed.at_most(self.received) > self.reported {
            Self::MOVED_PAUSE
        } else if self.asked {
            Self::ASKED_PAUSE
        } else {
            self.interval
        };
        self.reported_at + pause
    }

    /// What to report now.
    pub(super) fn report(&mut self, confirmed: ConfirmedLsn, now: Instant) -> Report {
        self.reported = self.reported.max(confirmed.at_most(self.received));
        self.reported_at = now;
        self.asked = false;
        Report {
            position: self.reported,
            reply_requested: self.quiet_for(now) >= Self::QUIET,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(offset: u64) -> ConfirmedLsn {
        ConfirmedLsn::everything_before(Lsn::new(offset))
    }

    /// On a connection that has received up to 100.
    fn feedback(interval: Duration, start: Instant) -> Feedback {
        let mut feedback = Feedback::new(interval, start);
        feedback.received(Lsn::new(100));
        feedback
    }

    #[test]
    fn reports_soon_when_moved_later_when_asked_and_at_last_anyway() {
        let start = Instant::now();
        let mut feedback = feedback(10 * SECOND, start);
        assert_eq!(feedback.due_at(ConfirmedLsn::NONE), start + 10 * SECOND);
        assert_eq!(feedback.due_at(at(5)), start + Feedback::MOVED_PAUSE);
        feedback.asked();
        assert_eq!(
            feedback.due_at(ConfirmedLsn::NONE),
            start + Feedback::ASKED_PAUSE
        );
        assert_eq!(feedback.report(at(5), start + SECOND).position, at(5));
        assert_eq!(feedback.due_at(at(5)), start + 11 * SECOND);
    }

    #[test]
    fn a_position_never_goes_back() {
        let start = Instant::now();
        let mut feedback = feedback(SECOND, start);
        feedback.report(at(9), start);
        assert_eq!(feedback.report(at(3), start).position, at(9));
    }

    #[test]
    fn a_position_of_an_earlier_connection_waits_until_it_is_received_again() {
        let start = Instant::now();
        let mut feedback = Feedback::new(10 * SECOND, start);
        assert_eq!(feedback.report(at(50), start).position, ConfirmedLsn::NONE);
        assert_eq!(feedback.due_at(at(50)), start + 10 * SECOND);
        feedback.received(Lsn::new(30));
        assert_eq!(feedback.report(at(50), start).position, at(30));
        feedback.received(Lsn::new(70));
        assert_eq!(feedback.report(at(50), start).position, at(50));
    }

    #[test]
    fn a_quiet_server_is_asked_whether_it_is_there() {
        let start = Instant::now();
        let mut feedback = feedback(SECOND, start);
        assert!(!feedback.report(at(1), start + SECOND).reply_requested);
        assert!(feedback.report(at(1), start + 5 * SECOND).reply_requested);
        feedback.heard(start + 5 * SECOND);
        assert!(!feedback.report(at(1), start + 6 * SECOND).reply_requested);
        assert_eq!(feedback.quiet_for(start + 7 * SECOND), 2 * SECOND);
    }

    #[test]
    fn the_session_is_kept_alive_whatever_was_wanted() {
        assert_eq!(Feedback::interval(10 * SECOND, 60 * SECOND), 5 * SECOND);
        assert_eq!(Feedback::interval(SECOND, 60 * SECOND), SECOND);
        assert_eq!(Feedback::interval(30 * SECOND, 8 * SECOND), 2 * SECOND);
    }
}
