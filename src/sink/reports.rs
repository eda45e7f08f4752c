use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use super::DeliveryFailure;
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

/// Delivery reports on their way from the broker client's thread to the relay.
///
/// Each producer has one of its own, so that reports of an abandoned producer reach nobody.
/// Holds at most one report a record in flight.
#[derive(Debug, Default)]
pub struct Reports {
    waiting: Mutex<Vec<Report>>,
    arrived: Notify,
    failed: AtomicBool,
}

impl Reports {
    /// Adds a report and wakes the relay.
    pub fn put(&self, report: Report) {
        if report.outcome.is_err() {
            // Before anything else: what is behind a failed record must not be sent (rule R3).
            self.failed.store(true, Ordering::Release);
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let first = waiting.is_empty();
        waiting.push(report);
        drop(waiting);
        if first {
            self.arrived.notify_one();
        }
    }

    /// Whether any record failed for good, so that nothing more may be handed over.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Moves all waiting reports into `into`, which must be empty and keeps its capacity.
    pub fn take(&self, into: &mut Vec<Report>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *waiting, into);
    }

    /// Waits until a report is there. Cancel-safe: a wake-up is not lost.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
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
        assert!(!reports.failed());
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
}
