use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::error::RelayError;
use super::failpoint::{self, Death};
use super::feedback::Feedback;
use crate::model::{ConfirmedLsn, Lsn};
use crate::ops::Connector;
use crate::source::postgres::{Inbound, ReplicationStream, SourceError, StreamEvent};

/// The stream together with what is owed to the server on it.
pub(super) struct Upstream {
    stream: ReplicationStream,
    feedback: Feedback,
    connector: Connector,
}

impl Upstream {
    pub(super) fn new(stream: ReplicationStream, interval: Duration, connector: Connector) -> Self {
        Self {
            stream,
            feedback: Feedback::new(interval, Instant::now()),
            connector,
        }
    }

    /// See [`ReplicationStream::data`].
    pub(super) fn data<'a>(&self, inbound: &'a Inbound) -> Result<Option<&'a [u8]>, SourceError> {
        self.stream.data(inbound)
    }

    /// See [`ReplicationStream::event`].
    pub(super) fn event(&self, inbound: &mut Inbound) -> Result<StreamEvent, SourceError> {
        self.stream.event(inbound)
    }

    /// The server wants an answer.
    pub(super) fn asked(&mut self) {
        self.feedback.asked();
    }

    /// A COMMIT or a keepalive told this position.
    pub(super) fn received(&mut self, position: Lsn) {
        self.feedback.received(position);
    }

    /// The socket was not read for a while, so the server could not be heard.
    pub(super) fn was_not_listening(&mut self) {
        self.feedback.heard(Instant::now());
    }

    /// For how long the server has said nothing although it is asked every few seconds.
    pub(super) fn quiet_for(&self) -> Duration {
        self.feedback.quiet_for(Instant::now())
    }

    /// See [`ReplicationStream::receive`]. Cancel-safe.
    pub(super) async fn receive(&mut self, inbound: &mut Inbound) -> Result<(), SourceError> {
        self.stream.receive(inbound).await?;
        self.feedback.heard(Instant::now());
        Ok(())
    }

    /// When the next report is due.
    pub(super) fn due_at(&self, confirmed: ConfirmedLsn) -> Instant {
        self.feedback.due_at(confirmed)
    }

    /// Makes a report if one is due. Every loop that keeps the stream comes by here, so it is
    /// also the sign that the relay is alive (rule R10).
    pub(super) async fn report_if_due(
        &mut self,
        confirmed: ConfirmedLsn,
    ) -> Result<(), SourceError> {
        self.connector.turned();
        let now = Instant::now();
        if now < self.feedback.due_at(confirmed) {
            return Ok(());
        }
        let report = self.feedback.report(confirmed, now);
        failpoint::may_die(Death::BeforeConfirmation);
        self.stream
            .send(report.position, report.reply_requested)
            .await
    }

    /// Waits for something that is neither the stream nor the broker, and goes on reporting
    /// meanwhile.
    pub(super) async fn report_while<T>(
        &mut self,
        confirmed: ConfirmedLsn,
        work: impl Future<Output = Result<T, SourceError>>,
    ) -> Result<T, RelayError> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                outcome = &mut work => return Ok(outcome?),
                () = tokio::time::sleep_until(self.due_at(confirmed)) => {
                    self.report_if_due(confirmed).await?;
                }
            }
        }
    }

    /// See [`ReplicationStream::finish`].
    pub(super) async fn finish(
        mut self,
        inbound: Inbound,
        confirmed: ConfirmedLsn,
    ) -> Result<(), SourceError> {
        let report = self.feedback.report(confirmed, Instant::now());
        self.stream.finish(inbound, report.position).await
    }
}
