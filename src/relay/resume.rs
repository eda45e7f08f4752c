use std::collections::VecDeque;

use super::poison::Place;
use crate::model::Lsn;
use crate::source::postgres::SystemIdentity;
use crate::source::postgres::pgoutput::Begin;

/// What this process has handed to the producer already, so that after a lost connection it is
/// not handed over again (rule R4). A server sends again what was not confirmed when the
/// connection broke, and, up to PostgreSQL 16, after its own restart also some of what was.
///
/// Only an exact match counts: a transaction is recognised by commit LSN, number and commit
/// time together. Anything else is taken for new, which at worst repeats events.
#[derive(Debug)]
pub(super) struct Resume {
    /// Most transactions remembered; with 0 not even the one that was cut.
    capacity: usize,
    /// Completed transactions with rows, in the order of their commits.
    done: VecDeque<Begin>,
    /// The transaction that was being read when a connection broke.
    cut: Option<Progress>,
    /// The transaction being read now.
    current: Option<Progress>,
    /// How many row messages of the current one were handled before, on another connection.
    handled_before: u64,
    system: Option<SystemIdentity>,
    /// The highest position received so far.
    received: Lsn,
}

#[derive(Debug, Clone, Copy)]
struct Progress {
    begin: Begin,
    /// Row messages handled.
    rows: u64,
}

/// Whether a new connection continues the log of the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Continuity {
    /// The first connection, or the same log.
    Continues,
    /// Another log: nothing remembered holds for it.
    Broken(String),
}

impl Resume {
    /// Remembers at most `capacity` transactions.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            done: VecDeque::new(),
            cut: None,
            current: None,
            handled_before: 0,
            system: None,
            received: Lsn::ZERO,
        }
    }

    /// A connection was made to this system; forgets everything when its log is not the one we
    /// know.
    pub(super) fn connected(&mut self, system: SystemIdentity) -> Continuity {
        let broken = self.system.as_ref().and_then(|known| {
            if known.system_id != system.system_id {
                Some(format!(
                    "this is another database system ({} instead of {})",
                    system.system_id, known.system_id
                ))
            } else if known.timeline != system.timeline {
                Some(format!(
                    "the server is on timeline {} instead of {}, after a failover or a restore",
                    system.timeline, known.timeline
                ))
            } else if system.wal_end < self.received {
                Some(format!(
                    "the server's log ends at {}, and {} was already received from it",
                    system.wal_end, self.received
                ))
            } else {
                None
            }
        });
        self.system = Some(system);
        match broken {
            None => Continuity::Continues,
            Some(why) => {
                self.forget();
                self.received = Lsn::ZERO;
                Continuity::Broken(why)
            }
        }
    }

    /// A COMMIT or a keepalive told this position.
    pub(super) fn received(&mut self, position: Lsn) {
        self.received = self.received.max(position);
        // A server that is past a commit has sent it: somebody moved the slot beyond it.
        if self.current.is_none() {
            self.cut = self.cut.filter(|cut| cut.begin.final_lsn >= position);
        }
    }

    /// A transaction begins.
    pub(super) fn begin(&mut self, begin: Begin) {
        self.handled_before = if self.is_done(&begin) {
            u64::MAX
        } else {
            self.cut
                .filter(|cut| cut.begin == begin)
                .map_or(0, |cut| cut.rows)
        };
        self.current = Some(Progress { begin, rows: 0 });
    }

    /// Whether the row message that comes now was handled on an earlier connection.
    pub(super) fn is_handled(&self) -> bool {
        self.current
            .is_some_and(|current| current.rows < self.handled_before)
    }

    /// The row message is handled: handed over, or of no concern. Not to be said of one that
    /// failed half-way.
    pub(super) fn handled(&mut self) {
        if let Some(current) = &mut self.current {
            current.rows += 1;
        }
    }

    /// The transaction is complete.
    pub(super) fn commit(&mut self) {
        let Some(current) = self.current.take() else {
            return;
        };
        if self.cut.is_some_and(|cut| cut.begin == current.begin) {
            self.cut = None;
        }
        // One that comes again after it fell out does not push out those behind it.
        let is_newest = self
            .done
            .back()
            .is_none_or(|last| last.final_lsn < current.begin.final_lsn);
        if self.capacity > 0 && current.rows > 0 && is_newest {
            if self.done.len() == self.capacity {
                self.done.pop_front();
            }
            self.done.push_back(current.begin);
        }
    }

    /// Where the row message that comes now stands.
    pub(super) fn place(&self) -> Option<Place> {
        let Progress { begin, rows } = self.current?;
        Some(Place { begin, row: rows })
    }

    /// Whether a transaction was partly handed over and its rest is still to come.
    pub(super) fn has_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// The connection broke; what was being read comes again from its BEGIN.
    pub(super) fn disconnected(&mut self) {
        let Some(current) = self.current.take() else {
            return;
        };
        if self.capacity == 0 {
            return;
        }
        // Read further than before, or cut for the first time. A transaction that is done
        // needs no remembering, and one cut earlier is still to come.
        let known_cut = self.cut.filter(|cut| cut.begin == current.begin);
        if self.handled_before != u64::MAX && current.rows > known_cut.map_or(0, |cut| cut.rows) {
            self.cut = Some(current);
        }
    }

    fn forget(&mut self) {
        self.done.clear();
        self.cut = None;
        self.current = None;
        self.handled_before = 0;
    }

    /// Commit LSNs grow in the order of commits, so the place is found by halving.
    fn is_done(&self, begin: &Begin) -> bool {
        let at = self
            .done
            .partition_point(|done| done.final_lsn < begin.final_lsn);
        self.done.get(at) == Some(begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::postgres::pgoutput::{Timestamp, Xid};
    use proptest::prelude::*;

    const NOTHING: [u64; 0] = [];

    fn system(timeline: u32, wal_end: u64) -> SystemIdentity {
        SystemIdentity {
            system_id: "7".to_owned(),
            timeline,
            wal_end: Lsn::new(wal_end),
        }
    }

    fn transaction(number: u64) -> Begin {
        Begin {
            final_lsn: Lsn::new(number * 100),
            commit_time: Timestamp(0),
            xid: Xid(u32::try_from(number).unwrap()),
        }
    }

    /// Reads a transaction of `rows` rows up to `until`, and returns which rows were new.
    fn read(resume: &mut Resume, number: u64, rows: u64, until: u64) -> Vec<u64> {
        let mut new = Vec::new();
        resume.begin(transaction(number));
        for row in 0..rows.min(until) {
            if !resume.is_handled() {
                new.push(row);
            }
            resume.handled();
        }
        if until > rows {
            resume.commit();
        } else {
            resume.disconnected();
        }
        new
    }

    #[test]
    fn a_transaction_sent_again_is_skipped_and_the_next_is_not() {
        let mut resume = Resume::new(100);
        resume.connected(system(1, 0));
        assert_eq!(read(&mut resume, 1, 2, 99), [0, 1]);
        resume.disconnected();
        assert_eq!(resume.connected(system(1, 500)), Continuity::Continues);
        assert_eq!(read(&mut resume, 1, 2, 99), NOTHING);
        assert_eq!(read(&mut resume, 2, 1, 99), [0]);
    }

    #[test]
    fn only_the_last_ones_are_remembered_and_with_room_for_none_nothing_is() {
        let mut resume = Resume::new(2);
        for number in 1..=3 {
            read(&mut resume, number, 1, 99);
        }
        let again: Vec<_> = (1..=3).map(|n| read(&mut resume, n, 1, 99)).collect();
        assert_eq!(again, [vec![0], vec![], vec![]]);

        let mut resume = Resume::new(0);
        read(&mut resume, 1, 1, 99);
        read(&mut resume, 2, 3, 2);
        assert!(!resume.has_cut());
        assert_eq!(read(&mut resume, 1, 1, 99), [0]);
        assert_eq!(read(&mut resume, 2, 3, 99), [0, 1, 2]);
    }

    #[test]
    fn of_a_transaction_cut_in_the_middle_only_the_rest_is_new() {
        let mut resume = Resume::new(100);
        assert_eq!(read(&mut resume, 1, 5, 3), [0, 1, 2]);
        // Cut again, earlier and then later.
        assert_eq!(read(&mut resume, 1, 5, 1), NOTHING);
        assert_eq!(read(&mut resume, 1, 5, 4), [3]);
        assert_eq!(read(&mut resume, 1, 5, 99), [4]);
        assert_eq!(read(&mut resume, 1, 5, 99), NOTHING);
    }

    #[test]
    fn a_cut_transaction_that_the_server_passes_over_is_not_waited_for() {
        let mut resume = Resume::new(100);
        read(&mut resume, 2, 5, 3);
        resume.received(Lsn::new(150));
        assert!(resume.has_cut());
        resume.received(Lsn::new(250));
        assert!(!resume.has_cut());
        read(&mut resume, 3, 5, 3);
        read(&mut resume, 4, 1, 99);
        resume.received(Lsn::new(450));
        assert!(!resume.has_cut());
    }

    #[test]
    fn the_same_position_with_another_number_or_time_is_another_transaction() {
        let mut resume = Resume::new(100);
        read(&mut resume, 1, 1, 99);
        for other in [
            Begin {
                xid: Xid(9),
                ..transaction(1)
            },
            Begin {
                commit_time: Timestamp(9),
                ..transaction(1)
            },
        ] {
            resume.begin(other);
            assert!(!resume.is_handled());
            resume.disconnected();
        }
    }

    #[test]
    fn another_log_makes_it_forget() {
        for other in [
            system(2, 1000),
            system(1, 50),
            SystemIdentity {
                system_id: "8".to_owned(),
                ..system(1, 1000)
            },
        ] {
            let mut resume = Resume::new(100);
            resume.connected(system(1, 0));
            read(&mut resume, 1, 1, 99);
            resume.received(Lsn::new(100));
            assert!(matches!(resume.connected(other), Continuity::Broken(_)));
            assert_eq!(read(&mut resume, 1, 1, 99), [0]);
        }
    }

    proptest! {
        /// However often the stream breaks, and wherever it begins again, every row is handled
        /// exactly once.
        #[test]
        fn every_row_is_handled_once(
            sizes in proptest::collection::vec(0_u64..6, 1..12),
            breaks in proptest::collection::vec((0_usize..40, 0_usize..12), 0..8),
        ) {
            let mut resume = Resume::new(100);
            let mut handled = vec![Vec::new(); sizes.len()];
            let attempts = breaks.into_iter().chain([(usize::MAX, 0)]);
            let mut done = 0;
            for (mut budget, back) in attempts {
                // The server goes back at most to its confirmed position.
                let from = done - back.min(done);
                'stream: for number in from..sizes.len() {
                    resume.begin(transaction(u64::try_from(number).unwrap() + 1));
                    for row in 0..sizes[number] {
                        if budget == 0 {
                            break 'stream;
                        }
                        budget -= 1;
                        if !resume.is_handled() {
                            handled[number].push(row);
                        }
                        resume.handled();
                    }
                    resume.commit();
                    done = done.max(number + 1);
                }
                resume.disconnected();
            }
            for (number, size) in sizes.iter().enumerate() {
                prop_assert_eq!(&handled[number], &(0..*size).collect::<Vec<_>>());
            }
        }
    }
}
