#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::task::JoinSet;

use super::ack::{AckWindow, Limits};
use super::batches::Batches;
use super::broker_watch::{BrokerTrouble, watch_brokers};
use super::error::RelayError;
use super::failpoint::{self, Death};
use super::poison::Place;
use super::resume::{Continuity, Resume};
use crate::config::Delivery as DeliveryConfig;
use crate::model::{ConfirmedLsn, ErrorClass, Lsn, OutgoingRecord, Sequence};
use crate::ops::Connector;
use crate::sink::{Report, Reports, Sink, SinkError, SinkOptions};
use crate::source::postgres::SystemIdentity;
use crate::source::postgres::pgoutput::Begin;

/// Why the producer before this one was given up.
struct Doubt {
    why: String,
    since: Instant,
}

impl Doubt {
    /// With nothing to deliver nothing can be shown.
    const LASTS: Duration = Duration::from_secs(10);
}

/// One producer with everything that is known of its records: the sink, its reports, the window
/// of what is not acknowledged yet, and what was handed over already. They live and die together
/// (rule R3), and outlive a lost database connection (rule R4).
pub(super) struct Delivery {
    sink: Sink,
    reports: Arc<Reports>,
    window: AckWindow,
    resume: Resume,
    /// The number of a record the sink had no room for, to be used when it is tried again.
    numbered: Option<Sequence>,
    /// Reports being handled; empty between calls, kept for its capacity.
    handling: Vec<Report>,
    /// Of what and of when the records in flight are, for those who watch.
    batches: Batches,
    connector: Connector,
    trouble: BrokerTrouble,
    /// Why the producer before this one was given up, until this one shows that it is better.
    doubt: Option<Doubt>,
    /// So many records go one by one, each acknowledged before the next is handed over: one of
    /// them can never be sent, and what fails alone is known.
    one_by_one: usize,
    /// Watches the brokers; ends with the producer.
    _watching: JoinSet<()>,
    /// The confirmed position when it was last told of.
    told: ConfirmedLsn,
}

impl Delivery {
    pub(super) fn open(
        options: &SinkOptions,
        limits: &DeliveryConfig,
        connector: Connector,
        predecessor_failed: Option<String>,
        one_by_one: usize,
    ) -> Result<Self, SinkError> {
        let reports = Arc::new(Reports::default());
        let sink = Sink::open(options, Arc::clone(&reports))?;
        let trouble = BrokerTrouble::default();
        let mut watching = JoinSet::new();
        if let Some(probe) = sink.probe() {
            watching.spawn(watch_brokers(probe, trouble.clone()));
        }
        Ok(Self {
            sink,
            reports,
            window: AckWindow::new(Limits {
                events: limits.max_queue_size,
                bytes: limits.max_queue_bytes,
            }),
            resume: Resume::new(limits.resume_transactions),
            numbered: None,
            handling: Vec::new(),
            batches: Batches::new(Instant::now()),
            connector,
            trouble,
            doubt: predecessor_failed.map(|why| Doubt {
                why,
                since: Instant::now(),
            }),
            one_by_one,
            _watching: watching,
            told: ConfirmedLsn::NONE,
        })
    }

    /// What is handed over from here on counts as handed over now. Called once a turn, so that
    /// an event needs no look at the clock.
    pub(super) fn turned(&mut self) {
        self.batches.turned(Instant::now());
    }

    /// A connection was made to this system.
    pub(super) fn connected(&mut self, system: SystemIdentity) -> Continuity {
        let continuity = self.resume.connected(system);
        if continuity != Continuity::Continues {
            self.window.forget_positions();
        }
        continuity
    }

    /// The connection is gone; what was not confirmed comes again on the next one.
    pub(super) fn disconnected(&mut self) {
        self.resume.disconnected();
        self.window.abandon_open_transaction();
    }

    /// A transaction begins.
    pub(super) fn begin(&mut self, begin: Begin) -> Result<(), RelayError> {
        self.window.begin()?;
        self.batches.begin(begin.commit_time);
        self.resume.begin(begin);
        Ok(())
    }

    /// Whether the row message that comes now was handled on an earlier connection.
    pub(super) fn is_handled(&self) -> bool {
        self.resume.is_handled()
    }

    /// The row message is handled, whatever that meant for it.
    pub(super) fn handled(&mut self) {
        self.resume.handled();
    }

    /// The transaction ends; `end` may be confirmed once all before it is acknowledged.
    pub(super) fn commit(&mut self, end: Lsn) -> Result<(), RelayError> {
        self.window.commit(end)?;
        self.resume.commit();
        self.resume.received(end);
        Ok(())
    }

    /// A keepalive says that nothing for us lies before `wal_end` but what we were sent.
    pub(super) fn idle(&mut self, wal_end: Lsn) {
        self.window.idle_position(wal_end);
        self.resume.received(wal_end);
    }

    /// Hands the record over if there is room for it.
    pub(super) fn try_enqueue(
        &mut self,
        size: usize,
        record: &OutgoingRecord<'_>,
    ) -> Result<bool, RelayError> {
        let sequence = match self.numbered.take() {
            Some(sequence) => sequence,
            None if self.window.has_room(size) => self.window.enqueue(size)?,
            None => return Ok(false),
        };
        match self.sink.enqueue(sequence, record) {
            Ok(()) => {
                self.batches.enqueued(sequence, record.topic);
                failpoint::may_die(Death::AfterEnqueue);
                if failpoint::acknowledges_on_enqueue() {
                    self.window.acknowledge(sequence)?;
                }
                Ok(true)
            }
            Err(SinkError::Full) => {
                self.numbered = Some(sequence);
                Ok(false)
            }
            Err(SinkError::Refused(failure)) if failure.class() == ErrorClass::Poison => {
                // It never reached the client: another may take its place.
                self.window.withdraw_last();
                Err(RelayError::Unsendable(failure))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether each record has to be acknowledged before the next is handed over, so that one
    /// that is refused is known.
    pub(super) fn goes_one_by_one(&self) -> bool {
        self.one_by_one > 0
    }

    /// A record that went alone is acknowledged.
    pub(super) fn went_alone(&mut self) {
        self.one_by_one = self.one_by_one.saturating_sub(1);
    }

    /// Where the row message that comes now stands.
    pub(super) fn place(&self) -> Option<Place> {
        self.resume.place()
    }

    /// Whether the producer takes nothing more.
    pub(super) fn is_finished(&self) -> bool {
        self.reports.is_finished()
    }

    /// Whether the producer is finished, and by a record that went alone: everything before it
    /// is acknowledged.
    pub(super) fn is_finished_by_one(&self) -> bool {
        self.is_finished() && self.goes_one_by_one() && self.window.in_flight() <= 1
    }

    /// With another producer in place of one that is finished, all of whose records but the one
    /// it was finished by are acknowledged: what was handed over stays known.
    pub(super) async fn renewed(
        mut self,
        options: &SinkOptions,
        limits: &DeliveryConfig,
    ) -> Result<Self, SinkError> {
        let mut fresh = Self::open(
            options,
            limits,
            self.connector.clone(),
            None,
            self.one_by_one,
        )?;
        fresh.resume = std::mem::replace(&mut self.resume, Resume::new(0));
        self.close().await;
        Ok(fresh)
    }

    /// Waits until a delivery was reported, or there is something new to be said of the
    /// brokers. Cancel-safe.
    pub(super) async fn reported(&self) {
        tokio::select! {
            () = self.reports.arrived() => {}
            () = self.trouble.changed() => {}
        }
    }

    /// Enters all waiting reports into the window.
    ///
    /// # Errors
    /// Why the sink is finished: a record failed for good, or the client gave up.
    pub(super) fn collect(&mut self) -> Result<(), RelayError> {
        self.turned();
        self.reports.take(&mut self.handling);
        for report in self.handling.drain(..) {
            match report.outcome {
                Ok(()) if failpoint::acknowledges_on_enqueue() => {}
                Ok(()) => {
                    self.window.acknowledge(report.sequence)?;
                    failpoint::may_die(Death::AfterAcknowledgement);
                    self.doubt = None;
                }
                Err(_) => self.window.fail(report.sequence),
            }
        }
        self.tell();
        match self.sink.verdict() {
            Some(failure) => Err(SinkError::Refused(failure).into()),
            None => Ok(()),
        }
    }

    /// Tells those who watch what is acknowledged and what is not.
    fn tell(&mut self) {
        let oldest = self.window.oldest_unacknowledged();
        let now = SystemTime::now();
        let any = self
            .batches
            .acknowledged(oldest, now.into(), &self.connector);
        if any || self.confirmed() != self.told {
            self.told = self.confirmed();
            self.connector.progressed(now);
        }
        self.connector.in_flight(
            self.window.in_flight(),
            self.window.in_flight_bytes(),
            self.batches.oldest(),
        );
    }

    /// Why nothing is delivered, as far as it is known: no broker answers, or the producer before
    /// this one failed and this one has shown nothing yet.
    pub(super) fn trouble(&self) -> Option<String> {
        let doubt = self.doubt.as_ref();
        self.trouble.now().or_else(|| {
            doubt
                .filter(|doubt| doubt.since.elapsed() < Doubt::LASTS)
                .map(|doubt| doubt.why.clone())
        })
    }

    /// Everything before this is acknowledged.
    pub(super) fn confirmed(&self) -> ConfirmedLsn {
        self.window.confirmed()
    }

    /// How many records are not acknowledged yet.
    pub(super) fn in_flight(&self) -> usize {
        self.window.in_flight()
    }

    /// Whether stopping now would cut a transaction whose events are partly handed over, so
    /// that they would be sent twice.
    pub(super) fn is_inside_sent_transaction(&self) -> bool {
        self.window.open_events() > 0 || self.resume.has_cut()
    }

    /// Gives the producer up. What it has not delivered is thrown away; it comes again.
    pub(super) async fn close(self) {
        self.connector.in_flight(0, 0, None);
        let sink = self.sink;
        // Ending the client's threads can take a while when a broker does not answer.
        let closing = tokio::task::spawn_blocking(move || sink.close());
        if closing.await.is_err() {
            tracing::error!("Closing the sink failed.");
        }
    }
}
