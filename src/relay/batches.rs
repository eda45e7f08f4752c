use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::Sequence;
use crate::ops::Connector;
use crate::source::postgres::pgoutput::Timestamp;

/// Of which topic and of when the events in flight are, for those who watch.
///
/// Events that are alike in all of it follow one another, so they are kept as batches: an event
/// costs a comparison, and clocks are read once a turn.
#[derive(Debug)]
pub(super) struct Batches {
    waiting: VecDeque<Batch>,
    /// When the current transaction committed.
    committed: Timestamp,
    now: Instant,
    /// The topics named lately, so that a batch needs no allocation.
    topics: HashSet<Arc<str>>,
}

/// Consecutive events of one transaction for one topic, handed over in one turn.
#[derive(Debug)]
struct Batch {
    last: Sequence,
    events: u64,
    topic: Arc<str>,
    committed: Timestamp,
    enqueued: Instant,
}

impl Batches {
    const MAX_TOPICS: usize = 1000;

    pub(super) fn new(now: Instant) -> Self {
        Self {
            waiting: VecDeque::new(),
            committed: Timestamp(0),
            now,
            topics: HashSet::new(),
        }
    }

    /// Another turn of the relay's loop.
    pub(super) fn turned(&mut self, now: Instant) {
        self.now = now;
    }

    /// The events that follow belong to a transaction that committed at `committed`.
    pub(super) fn begin(&mut self, committed: Timestamp) {
        self.committed = committed;
    }

    /// An event was handed to the sink.
    pub(super) fn enqueued(&mut self, sequence: Sequence, topic: &str) {
        if let Some(batch) = self.waiting.back_mut()
            && batch.enqueued == self.now
            && batch.committed == self.committed
            && &*batch.topic == topic
        {
            batch.last = sequence;
            batch.events += 1;
            return;
        }
        let topic = self.interned(topic);
        self.waiting.push_back(Batch {
            last: sequence,
            events: 1,
            topic,
            committed: self.committed,
            enqueued: self.now,
        });
    }

    /// Tells of the batches before `oldest`, the first event that is not acknowledged. Whether
    /// there were any.
    pub(super) fn acknowledged(
        &mut self,
        oldest: Option<Sequence>,
        now: Timestamp,
        connector: &Connector,
    ) -> bool {
        let mut any = false;
        while let Some(batch) = self.waiting.front()
            && oldest.is_none_or(|oldest| batch.last.0 < oldest.0)
        {
            any = true;
            connector.delivered(&batch.topic, batch.events);
            // Two machines' clocks: the difference can be below nothing.
            let micros = now.0.saturating_sub(batch.committed.0);
            connector.acknowledged(Duration::from_micros(u64::try_from(micros).unwrap_or(0)));
            self.waiting.pop_front();
        }
        any
    }

    /// When the oldest event in flight was handed over.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.waiting.front().map(|batch| batch.enqueued)
    }

    fn interned(&mut self, topic: &str) -> Arc<str> {
        if let Some(known) = self.topics.get(topic) {
            return Arc::clone(known);
        }
        if self.topics.len() >= Self::MAX_TOPICS {
            self.topics.clear();
        }
        let topic: Arc<str> = topic.into();
        self.topics.insert(Arc::clone(&topic));
        topic
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Monitor;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn alike_events_are_one_batch_and_told_when_all_of_it_is_acknowledged() {
        let start = Instant::now();
        let monitor = Monitor::empty();
        let connector = monitor.connector("c", SECOND);
        let mut batches = Batches::new(start);
        batches.begin(Timestamp(1_000_000));
        batches.enqueued(Sequence(0), "a");
        batches.enqueued(Sequence(1), "a");
        batches.enqueued(Sequence(2), "b");
        batches.turned(start + SECOND);
        batches.enqueued(Sequence(3), "b");
        batches.begin(Timestamp(2_000_000));
        batches.enqueued(Sequence(4), "b");
        assert_eq!(batches.waiting.len(), 4);
        assert_eq!(batches.oldest(), Some(start));

        let now = Timestamp(3_500_000);
        // In the middle of a batch.
        assert!(!batches.acknowledged(Some(Sequence(1)), now, &connector));
        assert!(batches.acknowledged(Some(Sequence(3)), now, &connector));
        assert_eq!(batches.oldest(), Some(start + SECOND));
        assert!(batches.acknowledged(None, now, &connector));
        assert_eq!(batches.oldest(), None);

        let text = monitor.metrics();
        for line in [
            r#"outboxd_events_delivered_total{connector="c",topic="a"} 2"#,
            r#"outboxd_events_delivered_total{connector="c",topic="b"} 3"#,
            r#"outboxd_commit_to_acknowledged_seconds_count{connector="c"} 4"#,
            r#"outboxd_commit_to_acknowledged_seconds_sum{connector="c"} 9"#,
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }

    #[test]
    fn a_clock_that_is_behind_the_database_shows_as_no_time() {
        let monitor = Monitor::empty();
        let connector = monitor.connector("c", SECOND);
        let mut batches = Batches::new(Instant::now());
        batches.begin(Timestamp(i64::MAX));
        batches.enqueued(Sequence(0), "a");
        assert!(batches.acknowledged(None, Timestamp(i64::MIN), &connector));
        let text = monitor.metrics();
        assert!(text.contains(r#"seconds_sum{connector="c"} 0"#), "{text}");
    }

    #[test]
    fn topics_without_end_are_not_all_kept() {
        let mut batches = Batches::new(Instant::now());
        for number in 0..5000 {
            batches.enqueued(Sequence(number), &number.to_string());
        }
        assert!(batches.topics.len() <= Batches::MAX_TOPICS);
    }
}
