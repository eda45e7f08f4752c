use std::time::{Duration, Instant};

use tokio::time::{sleep, sleep_until, timeout};

use super::ack::ProtocolViolation;
use super::delivery::Delivery;
use super::error::RelayError;
use super::failpoint::{self, Death};
use super::farewell::Farewell;
use super::handover::wait_for_reports;
use super::obstacle::Obstacle;
use super::poison::Refused;
use super::position::Position;
use super::seldom::Seldom;
use super::skip::Skipping;
use super::stop::Stop;
use super::translate::Translator;
use super::upstream::Upstream;
use super::watch::Watch;
use crate::config::PoisonPolicy;
use crate::model::{Relation, RelationId};
use crate::ops;
use crate::router::OnUpdate;
use crate::source::postgres::pgoutput::{self, Message};
use crate::source::postgres::walmsg::{self, WalMessage};
use crate::source::postgres::{Inbound, Server, SourceError, StreamEvent, TableFacts};

/// One connection's worth of relaying: read once, handle all of it, read again.
///
/// A single task does all of it in order (rule R3), so there is nothing to hand over and
/// nothing to lock but the delivery reports.
pub(super) struct Pipeline<'c> {
    /// Where the stream comes from.
    pub(super) server: &'c Server,
    pub(super) on_update: OnUpdate,
    pub(super) upstream: Upstream,
    pub(super) delivery: &'c mut Delivery,
    pub(super) translator: Translator,
    pub(super) stop: &'c Stop,
    /// Where the next event of the open transaction stands.
    pub(super) transaction: Option<Position>,
    pub(super) updates: Seldom,
    /// With an answer asked for every few seconds, a server that says nothing for this long
    /// is gone: the session's `wal_sender_timeout`.
    pub(super) silence_limit: Duration,
    pub(super) farewell: Farewell,
    pub(super) watch: &'c Watch,
    pub(super) told: &'c ops::Connector,
    pub(super) obstacle: Obstacle<'c>,
    pub(super) poison: &'c PoisonPolicy,
    /// What was refused before, event by event.
    pub(super) refused: &'c Refused,
    /// The event to be passed over, where that is all that is to be done.
    pub(super) skipping: Option<&'c mut Skipping>,
}

/// A server that has not answered for this long makes the connector not ready.
const SUSPICIOUSLY_QUIET: Duration = Duration::from_secs(9);
/// What precedes a place that the stream cannot pass is waited for so long, while nothing else goes on.
const SETTLES_WITHIN: Duration = Duration::from_secs(5);

impl Pipeline<'_> {
    /// Relays until asked to stop, then lets what is in flight arrive and ends cleanly.
    ///
    /// # Errors
    /// Whatever breaks the stream or the producer. What was not confirmed comes again.
    pub(super) async fn run(mut self, mut inbound: Inbound) -> Result<(), RelayError> {
        match self.relay(&mut inbound).await {
            Ok(()) => self.finish(inbound).await,
            Err(error) if error.is_of_a_place() => {
                // What stands before it is good. Confirmed, it does not come again whoever comes
                // next, also with a configuration that fits only what stands behind the place, and
                // the server keeps no log for it.
                if let Ok(Err(why)) = timeout(SETTLES_WITHIN, self.finish(inbound)).await {
                    tracing::debug!("What precedes this place is not all confirmed: {why}.");
                }
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Relays until it is time to stop.
    async fn relay(&mut self, inbound: &mut Inbound) -> Result<(), RelayError> {
        loop {
            self.delivery.turned();
            while let Some(data) = self.upstream.data(inbound)? {
                self.handle(data).await?;
                inbound
                    .consume_copy_data()
                    .map_err(|source| SourceError::Protocol {
                        doing: "reading the replication stream",
                        what: source.to_string(),
                    })?;
                if self.may_stop() {
                    return Ok(());
                }
            }
            match self.upstream.event(inbound)? {
                StreamEvent::NeedsMore => {}
                StreamEvent::Passed => continue,
                StreamEvent::Ended => return Err(RelayError::StreamEnded),
            }
            self.delivery.collect()?;
            self.upstream
                .report_if_due(self.delivery.confirmed())
                .await?;
            if self.may_stop() {
                return Ok(());
            }
            self.look_for_trouble()?;
            let stopping = self.stop.is_requested();
            // Every branch is cancel-safe; what they find is handled above, in the next turn.
            tokio::select! {
                biased;
                () = self.stop.requested(), if !stopping => {}
                () = self.stop.overdue(), if stopping => return Err(RelayError::Overdue),
                () = self.farewell.overdue() => return Err(RelayError::ServerGoing),
                unfit = self.watch.unfit() => return Err(unfit.into()),
                () = self.delivery.reported() => {}
                () = sleep_until(self.upstream.due_at(self.delivery.confirmed())) => {}
                received = self.upstream.receive(inbound) => received?,
            }
        }
    }

    /// Tells what stands against delivery, and gives up a server that is silent for too long.
    fn look_for_trouble(&mut self) -> Result<(), RelayError> {
        let quiet = self.upstream.quiet_for();
        let seconds = quiet.as_secs();
        if quiet >= self.silence_limit {
            return Err(RelayError::Silent { seconds });
        }
        let trouble = if quiet >= SUSPICIOUSLY_QUIET {
            Some("PostgreSQL does not answer".to_owned())
        } else {
            self.delivery.trouble()
        };
        self.obstacle.is(trouble);
        Ok(())
    }

    /// Whether to stop here: asked to or done, and not in the middle of a transaction whose
    /// events are partly sent already.
    fn may_stop(&self) -> bool {
        let skipping = self.skipping.as_ref();
        let is_done = skipping.is_some_and(|skipping| skipping.is_done());
        (self.stop.is_requested() || is_done) && !self.delivery.is_inside_sent_transaction()
    }

    async fn handle(&mut self, data: &[u8]) -> Result<(), RelayError> {
        match walmsg::parse(data).map_err(SourceError::from)? {
            WalMessage::XLogData(message) => self.change(message.data).await,
            WalMessage::Keepalive(keepalive) => {
                // What has arrived meanwhile may be all that was in flight.
                self.delivery.collect()?;
                self.delivery.idle(keepalive.wal_end);
                if let Some(skipping) = &mut self.skipping {
                    skipping.passed(keepalive.wal_end)?;
                }
                self.upstream.received(keepalive.wal_end);
                if keepalive.reply_requested {
                    self.upstream.asked();
                }
                Ok(())
            }
        }
    }

    async fn change(&mut self, data: &[u8]) -> Result<(), RelayError> {
        match pgoutput::decode(data).map_err(SourceError::from)? {
            Message::Begin(begin) => {
                self.transaction = Some(Position { begin, sequence: 0 });
                if let Some(skipping) = &mut self.skipping {
                    skipping.passed(begin.final_lsn)?;
                }
                self.delivery.begin(begin)
            }
            Message::Commit(commit) => {
                let transaction = self.transaction.take();
                self.upstream.received(commit.end_lsn);
                self.delivery.commit(commit.end_lsn)?;
                if let (Some(skipping), Some(it)) = (&mut self.skipping, transaction) {
                    skipping.committed(it.commit_lsn())?;
                }
                Ok(())
            }
            Message::Relation { relation, .. } => self.relation(&relation).await,
            // The others have no meaning for an outbox.
            Message::Type { .. } | Message::Origin { .. } | Message::Logical(_) => Ok(()),
            row_message => {
                failpoint::may_die(Death::AfterDecode);
                let is_counted = matches!(&row_message, Message::Insert { relation, .. } if self.translator.counts(*relation));
                if self.delivery.is_handled() {
                    // On the connection that broke (rule R4).
                    self.told.skipped(1);
                } else {
                    self.row_message(row_message).await?;
                }
                // Only now: a row that failed on the way has to come again.
                self.delivery.handled();
                if is_counted && let Some(position) = &mut self.transaction {
                    position.sequence += 1;
                }
                Ok(())
            }
        }
    }

    /// Where the event that comes now stands.
    pub(super) fn position(&self) -> Result<Position, RelayError> {
        Ok(self
            .transaction
            .ok_or(ProtocolViolation::EventOutsideTransaction)?)
    }

    async fn row_message(&mut self, message: Message<'_>) -> Result<(), RelayError> {
        match message {
            Message::Insert { relation, row } => self.insert(relation, &row).await,
            Message::Update { relation, .. } => self.update(relation),
            // Deleting events is housekeeping. Truncating is too, and our own publications do
            // not even publish it.
            _ => Ok(()),
        }
    }

    /// Takes a table's new shape, with the catalog's help where the converters need it.
    async fn relation(&mut self, relation: &Relation) -> Result<(), RelayError> {
        let facts = if self.translator.needs_facts(relation)? {
            let asking = self.watch.table_facts(self.server, relation.id);
            let confirmed = self.delivery.confirmed();
            self.upstream.report_while(confirmed, asking).await?
        } else {
            TableFacts::default()
        };
        self.translator.relation(relation, &facts)
    }

    /// An event that changes after it was written is a mistake of the application
    /// (`EventRouterDelegate`, `table.op.invalid.behavior`).
    fn update(&mut self, relation: RelationId) -> Result<(), RelayError> {
        let Some(table) = self.translator.outbox_name(relation)? else {
            return Ok(());
        };
        if self.on_update == OnUpdate::Fatal {
            return Err(RelayError::Updated {
                table: table.clone(),
                lsn: self.position()?.commit_lsn(),
            });
        }
        if let Some(count) = self.updates.due(Instant::now()) {
            let said = format!(
                "Rows of the outbox table {table} were updated ({count} since this was last said). Events are only ever inserted; the updates are not sent."
            );
            match self.on_update {
                OnUpdate::Error => tracing::error!("{said}"),
                OnUpdate::Warn | OnUpdate::Fatal => tracing::warn!("{said}"),
            }
        }
        Ok(())
    }

    /// Lets what is in flight arrive, reports the last position and ends the stream.
    async fn finish(mut self, inbound: Inbound) -> Result<(), RelayError> {
        while self.delivery.in_flight() > 0 && !self.delivery.is_finished() {
            wait_for_reports(&mut self.upstream, self.delivery, self.stop, &self.farewell).await?;
        }
        let confirmed = self.delivery.confirmed();
        let ending = self.upstream.finish(inbound, confirmed);
        tokio::select! {
            outcome = ending => Ok(outcome?),
            () = self.stop.overdue() => Err(RelayError::Overdue),
            () = sleep(self.silence_limit) => Err(RelayError::Silent {
                seconds: self.silence_limit.as_secs(),
            }),
        }
    }
}
