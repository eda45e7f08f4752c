use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::DeliveryFailure;
use super::kafka::Rank;
use crate::model::Sequence;

/// What became of one record.
#[derive(Debug)]
pub struct Report {
    /// The number the record was handed over with.
    pub sequence: Sequence,
    /// Acknowledged by all in-sync replicas, or why it never will be.
    pub outcome: Result<(), DeliveryFailure>,
}

impl Report {
    /// The record is safe with the broker.
    pub fn delivered(sequence: Sequence) -> Self {
        Self {
            sequence,
            outcome: Ok(()),
        }
    }
}

/// What the broker client's threads have to say to the relay: delivery reports, that the
/// producer is finished, and that the brokers cannot be reached.
///
/// Each producer has one of its own, so that reports of an abandoned producer reach nobody.
/// Holds at most one report a record in flight.
#[derive(Debug, Default)]
pub struct Reports {
    /// Whether there is a verdict; asked before each record, so without the lock.
    finished: AtomicBool,
    /// Whether the client reported an error that may be its last.
    suspected: AtomicBool,
    /// Whether a record was delivered since this was last asked.
    delivered: AtomicBool,
    said: Mutex<Said>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Said {
    waiting: Vec<Report>,
    verdict: Option<Verdict>,
    trouble: Option<String>,
}

/// Why the producer is finished, as far as is known.
#[derive(Debug)]
struct Verdict {
    failure: DeliveryFailure,
    /// Until then the report that says the cause may come.
    settled_at: Instant,
}

/// A record's own report comes within milliseconds of what it brings about, since the client
/// makes both in one go.
const CAUSE_COMES_WITHIN: Duration = Duration::from_millis(500);

impl Reports {
    /// Adds a report and wakes the relay.
    pub fn put(&self, report: Report) {
        let mut said = self.said();
        match &report.outcome {
            Ok(()) => {
                said.trouble = None;
                self.delivered.store(true, Ordering::Relaxed);
            }
            Err(failure) => self.condemn(&mut said, failure.clone()),
        }
        let first = said.waiting.is_empty();
        said.waiting.push(report);
        drop(said);
        if first {
            self.arrived.notify_one();
        }
    }

    /// The client reported an error, so it has to be asked whether it gave up. Wakes the relay.
    pub fn suspect(&self) {
        self.suspected.store(true, Ordering::Release);
        self.arrived.notify_one();
    }

    /// Whether the client is to be asked; once for each suspicion.
    pub fn take_suspicion(&self) -> bool {
        self.suspected.swap(false, Ordering::AcqRel)
    }

    /// Whether a record was delivered since this was last asked.
    pub fn take_delivered(&self) -> bool {
        self.delivered.swap(false, Ordering::Relaxed)
    }

    /// The producer gave up, whether or not it holds records.
    pub fn lost(&self, failure: DeliveryFailure) {
        self.condemn(&mut self.said(), failure);
    }

    /// Whether the producer is finished: a record failed for good or the client gave up, so
    /// that nothing more may be handed over (rule R3).
    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Why the producer is finished. What may be no more than the consequence of another failure
    /// is told only after that had time to arrive.
    pub fn verdict(&self) -> Option<DeliveryFailure> {
        if !self.is_finished() {
            return None;
        }
        let said = self.said();
        let verdict = said.verdict.as_ref()?;
        (verdict.settled_at <= Instant::now()).then(|| verdict.failure.clone())
    }

    /// The brokers cannot be reached or refuse us; the client keeps trying.
    pub fn set_trouble(&self, what: String) {
        self.said().trouble = Some(what);
    }

    /// The brokers answer.
    pub fn clear_trouble(&self) {
        self.said().trouble = None;
    }

    /// What keeps the client from the brokers, until a record is delivered or a broker answers
    /// a probe.
    pub fn trouble(&self) -> Option<String> {
        self.said().trouble.clone()
    }

    /// Moves all waiting reports into `into`, which must be empty and keeps its capacity.
    pub fn take(&self, into: &mut Vec<Report>) {
        std::mem::swap(&mut self.said().waiting, into);
    }

    /// Waits until a report is there or a verdict is settled. Cancel-safe: a wake-up is not
    /// lost.
    pub async fn arrived(&self) {
        let settled_at = self.said().verdict.as_ref().map(|v| v.settled_at);
        match settled_at {
            None => self.arrived.notified().await,
            // Whether it was woken or the time is over: there is something to look at.
            Some(at) => drop(timeout_at(at, self.arrived.notified()).await),
        }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What explains most stands; of several such, the first.
    fn condemn(&self, said: &mut Said, failure: DeliveryFailure) {
        // Before anything else: what is behind a failed record must not be sent (rule R3).
        self.finished.store(true, Ordering::Release);
        let known = said.verdict.as_ref();
        if known.is_some_and(|known| known.failure.rank() >= failure.rank()) {
            return;
        }
        let mut settled_at = Instant::now();
        if failure.rank() < Rank::Cause {
            settled_at += CAUSE_COMES_WITHIN;
        }
        said.verdict = Some(Verdict {
            failure,
            settled_at,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_report_put_before_the_wait_ends_it() {
        let reports = Reports::default();
        reports.put(Report::delivered(Sequence(7)));
        reports.arrived().await;
        let mut taken = Vec::new();
        reports.take(&mut taken);
        assert_eq!(
            taken.iter().map(|r| r.sequence).collect::<Vec<_>>(),
            [Sequence(7)]
        );
        assert!(!reports.is_finished());
    }

    #[tokio::test]
    async fn every_batch_wakes_again() {
        let reports = Reports::default();
        let mut taken = Vec::new();
        for number in 0..3 {
            reports.put(Report::delivered(Sequence(number)));
            reports.arrived().await;
            taken.clear();
            reports.take(&mut taken);
            assert_eq!(taken.len(), 1);
        }
    }

    #[test]
    fn a_delivery_ends_the_trouble() {
        let reports = Reports::default();
        reports.set_trouble("1/1 brokers are down".to_owned());
        assert!(reports.trouble().is_some());
        reports.put(Report::delivered(Sequence(1)));
        assert_eq!(reports.trouble(), None);
    }
}
