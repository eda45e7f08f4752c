use tokio::time::sleep_until;

use super::delivery::Delivery;
use super::error::RelayError;
use super::farewell::Farewell;
use super::obstacle::Obstacle;
use super::pipeline::Pipeline;
use super::stop::Stop;
use super::upstream::Upstream;
use crate::config::PoisonPolicy;
use crate::model::{ErrorClass, OutgoingRecord, RelationId, Row};
use crate::sink::SinkError;

/// One event's way from its row to the sink.
impl Pipeline<'_> {
    /// Hands an inserted row over, or what takes its place.
    ///
    /// # Errors
    /// [`RelayError::Event`] when the event cannot be sent; everything before it is handed over.
    pub(super) async fn insert(
        &mut self,
        relation: RelationId,
        row: &Row<'_>,
    ) -> Result<(), RelayError> {
        if self.passes_over(relation, row)? {
            return Ok(());
        }
        let place = self.delivery.place();
        let outcome = match self.refused.reason(place) {
            Some(reason) => self.dead_letter(relation, row, reason).await,
            None => match self.event(relation, row).await {
                // A producer that is finished takes no dead letter either; the next one will.
                Err(RelayError::Event(error))
                    if self.poison != &PoisonPolicy::Stop && !self.delivery.is_finished() =>
                {
                    let reason = error.why.to_string();
                    self.dead_letter(relation, row, &reason).await
                }
                outcome => outcome,
            },
        };
        outcome.map_err(|error| match error {
            RelayError::Event(mut error) => {
                error.place = place;
                error.into()
            }
            error => error,
        })
    }

    /// Whether this is the event that `outboxd skip` leaves out.
    fn passes_over(&mut self, relation: RelationId, row: &Row<'_>) -> Result<bool, RelayError> {
        let lsn = self.position()?.commit_lsn();
        let Some(skipping) = &mut self.skipping else {
            return Ok(false);
        };
        let Some((event, table)) = self.translator.event(relation, row) else {
            return Ok(false);
        };
        let Some(reason) = skipping.passes_over(lsn, &event) else {
            return Ok(false);
        };
        self.told.passed_over();
        tracing::warn!(
            "The event {event} of table {table}, in the transaction that commits at {lsn}, is skipped and will not be sent: {reason}"
        );
        Ok(true)
    }

    async fn event(&mut self, relation: RelationId, row: &Row<'_>) -> Result<(), RelayError> {
        let position = self.position()?;
        let outcome = match self.translator.record(relation, row, position)? {
            None => return Ok(()),
            Some(translated) => {
                deliver(
                    &mut self.upstream,
                    self.delivery,
                    &mut self.obstacle,
                    self.stop,
                    &self.farewell,
                    &translated.record(),
                )
                .await
            }
        };
        outcome.map_err(|error| self.blamed(error, relation, row))
    }

    /// Sends what says why an event cannot be sent.
    async fn dead_letter(
        &mut self,
        relation: RelationId,
        row: &Row<'_>,
        reason: &str,
    ) -> Result<(), RelayError> {
        let PoisonPolicy::DeadLetter(topic) = self.poison else {
            return Ok(());
        };
        let position = self.position()?;
        let letter = self
            .translator
            .dead_letter(relation, row, position, reason)?;
        let outcome = deliver(
            &mut self.upstream,
            self.delivery,
            &mut self.obstacle,
            self.stop,
            &self.farewell,
            &letter.record(topic, &letter.headers()),
        )
        .await;
        outcome.map_err(|error| self.blamed(error, relation, row))?;
        self.told.dead_letter();
        tracing::warn!(
            "The event {} of table {}, in the transaction that commits at {}, went to the dead-letter topic {topic}: {reason}.",
            letter.event,
            letter.table,
            position.commit_lsn()
        );
        Ok(())
    }

    /// The error, with the event that it is about.
    fn blamed(&self, error: RelayError, relation: RelationId, row: &Row<'_>) -> RelayError {
        match error {
            RelayError::Unsendable(failure) => match self.position() {
                Ok(position) => self.translator.refused(relation, row, position, failure),
                Err(error) => error,
            },
            error => error,
        }
    }
}

/// Hands a record over, waiting for room as long as it takes. Meanwhile the socket is not read,
/// which holds the server back, but positions go on being reported (rule R5).
///
/// # Errors
/// [`RelayError::Unsendable`] when this very record is refused; everything before it is
/// acknowledged, or still may be.
async fn deliver(
    upstream: &mut Upstream,
    delivery: &mut Delivery,
    obstacle: &mut Obstacle<'_>,
    stop: &Stop,
    farewell: &Farewell,
    record: &OutgoingRecord<'_>,
) -> Result<(), RelayError> {
    let size = record.size();
    let alone = delivery.goes_one_by_one();
    let mut waited = false;
    while alone && delivery.in_flight() > 0 || !delivery.try_enqueue(size, record)? {
        waited = true;
        wait_for_reports(upstream, delivery, stop, farewell).await?;
        obstacle.is(delivery.trouble());
    }
    while alone && delivery.in_flight() > 0 {
        waited = true;
        match wait_for_reports(upstream, delivery, stop, farewell).await {
            Err(RelayError::Sink(SinkError::Refused(failure)))
                if failure.class() == ErrorClass::Poison =>
            {
                return Err(RelayError::Unsendable(failure));
            }
            Err(error) => {
                // It is on its way, whatever ended the waiting.
                delivery.handled();
                return Err(error);
            }
            Ok(()) => obstacle.is(delivery.trouble()),
        }
    }
    if alone {
        delivery.went_alone();
    }
    if waited {
        upstream.was_not_listening();
    }
    Ok(())
}

/// Waits until deliveries were reported or a report to the server is due.
pub(super) async fn wait_for_reports(
    upstream: &mut Upstream,
    delivery: &mut Delivery,
    stop: &Stop,
    farewell: &Farewell,
) -> Result<(), RelayError> {
    tokio::select! {
        biased;
        () = delivery.reported() => {}
        () = sleep_until(upstream.due_at(delivery.confirmed())) => {}
        () = stop.overdue() => return Err(RelayError::Overdue),
        () = farewell.overdue() => return Err(RelayError::ServerGoing),
    }
    delivery.collect()?;
    Ok(upstream.report_if_due(delivery.confirmed()).await?)
}
