use std::time::{Duration, Instant};

use super::backoff::Backoff;
use super::delivery::Delivery;
use super::error::{Chain, RelayError, RunError};
use super::failpoint;
use super::farewell::Farewell;
use super::feedback::Feedback;
use super::findings::{Shapes, SlotUse, Warned};
use super::obstacle::Obstacle;
use super::pipeline::Pipeline;
use super::poison::Refused;
use super::prepare::{Prepared, prepare};
use super::resume::Continuity;
use super::seldom::{Repeats, Seldom};
use super::skip::Skipping;
use super::stop::Stop;
use super::translate::Translator;
use super::upstream::Upstream;
use super::watch::Watch;
use crate::config::{Config, OnFatal, PoisonPolicy};
use crate::model::{ConfirmedLsn, ErrorClass, Lsn};
use crate::ops;
use crate::sink::{Pause, SinkError, SinkOptions};
use crate::source::postgres::ReplicationStream;

/// While failed, the cause is looked at again this often.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Runs one connector until it is asked to stop, trying again whatever can mend itself. What
/// happens is told to `told`.
///
/// # Errors
/// When only a person can mend what is wrong, and it never streamed or `outboxd.on.fatal=exit`.
/// The slot keeps its position.
pub async fn run(config: &Config, stop: &Stop, told: &ops::Connector) -> Result<(), RunError> {
    supervise(Connector::new(config, stop, told, None)).await?;
    Ok(())
}

pub(super) async fn supervise(mut connector: Connector<'_>) -> Result<Connector<'_>, RunError> {
    let _armed = failpoint::arm();
    let (config, stop, told) = (connector.config, connector.stop, connector.told);
    let mut backoff = Backoff::new();
    let mut failed_with = None;
    let mut interruptions = Repeats::default();
    loop {
        let outcome = connector.attempt().await;
        if connector.has_progressed() {
            backoff.reset();
            failed_with = None;
            interruptions.forget();
        }
        let error = match outcome {
            Ok(()) | Err(RelayError::Overdue) => {
                connector.end().await;
                return Ok(connector);
            }
            Err(error) => error,
        };
        connector.keep_or_drop_the_producer(&error).await?;
        told.error(error.class());
        if connector.will_be_a_dead_letter(&error) {
            continue;
        }
        if error.class() == ErrorClass::Poison {
            told.poisoned();
            connector.stopped_by(&error);
        }
        let said = Chain(&error).to_string();
        if error.class() == ErrorClass::Rewind {
            connector.rewound_by = Some(said.clone());
        }
        let wait = match error.class() {
            // A login that worked before: a password or a certificate is being changed.
            ErrorClass::Fatal if connector.has_streamed && error.is_login() => {
                told.waiting(&said);
                tracing::warn!(error = said, "The login is refused; trying again.");
                backoff.next(Pause::Long)
            }
            ErrorClass::Retry | ErrorClass::Rewind => {
                let wait = backoff.next(error.pause());
                told.waiting(&said);
                if interruptions.is_due(&said, Instant::now()) {
                    tracing::warn!(
                        error = said,
                        "Interrupted; trying again in {} ms, and then again and again, from the slot's confirmed position.",
                        wait.as_millis()
                    );
                }
                wait
            }
            ErrorClass::Fatal | ErrorClass::Poison if !connector.has_streamed => {
                return Err(RunError::Preflight(error));
            }
            ErrorClass::Fatal | ErrorClass::Poison if config.on_fatal == OnFatal::Exit => {
                return Err(RunError::Stopped(error));
            }
            ErrorClass::Fatal | ErrorClass::Poison => {
                told.failed(&said);
                if failed_with.as_ref() != Some(&said) {
                    tracing::error!(
                        error = said,
                        "Failed. Nothing is lost: the slot keeps its position. The cause is looked at again every {} s; outboxd goes on by itself once it is mended.",
                        LOOK_AGAIN.as_secs()
                    );
                    failed_with = Some(said);
                }
                LOOK_AGAIN
            }
        };
        tokio::select! {
            () = stop.requested() => {
                connector.end().await;
                return Ok(connector);
            }
            () = told.alive_during(tokio::time::sleep(wait)) => {}
        }
    }
}

pub(super) struct Connector<'c> {
    config: &'c Config,
    stop: &'c Stop,
    told: &'c ops::Connector,
    /// Looks at the server whatever becomes of the relay.
    watch: Watch,
    /// What the last look before a stream warned of.
    warned: Warned,
    /// What the catalog has against going on, and what is delivered nevertheless.
    shapes: Shapes,
    /// Names this process life in the context headers, as Debezium's task does.
    run_id: String,
    /// Outlives a lost database connection (rule R4).
    delivery: Option<Delivery>,
    /// What was confirmed when the last attempt began.
    confirmed_before: ConfirmedLsn,
    /// Whether any attempt ever streamed.
    has_streamed: bool,
    /// Why the producer was given up, for its successor.
    rewound_by: Option<String>,
    /// The events that go to the dead-letter topic when the stream comes to them again.
    refused: Refused,
    /// How many records the next producer is to be handed one by one.
    one_by_one: usize,
    /// What the next producer is opened with: as configured, and what was learnt of topics.
    sink: SinkOptions,
    /// The event that stopped the connector: its transaction's commit position.
    stopped_at: Option<Lsn>,
    /// The event to be passed over, where that is all that is to be done.
    skipping: Option<Skipping>,
}

impl<'c> Connector<'c> {
    pub(super) fn new(
        config: &'c Config,
        stop: &'c Stop,
        told: &'c ops::Connector,
        skipping: Option<Skipping>,
    ) -> Self {
        let shapes = Shapes::default();
        Self {
            config,
            stop,
            told,
            watch: Watch::start(config, told, shapes.clone()),
            warned: Warned::default(),
            shapes,
            run_id: uuid::Uuid::now_v7().to_string(),
            delivery: None,
            confirmed_before: ConfirmedLsn::NONE,
            has_streamed: false,
            rewound_by: None,
            refused: Refused::default(),
            one_by_one: 0,
            sink: config.sink.clone(),
            stopped_at: None,
            skipping,
        }
    }

    /// One attempt: prepare, connect, relay. Ends well only when a stop was asked for.
    async fn attempt(&mut self) -> Result<(), RelayError> {
        self.confirmed_before = self.confirmed();
        self.refused.forget_before(self.confirmed_before);
        let source = &self.config.source;
        let used = match self.has_streamed {
            true => SlotUse::InThisProcess,
            false => SlotUse::Unknown,
        };
        let starting = async {
            let prepared = prepare(self.config, used, &mut self.warned, &self.shapes).await?;
            let started =
                ReplicationStream::start(source, &prepared.server, prepared.set_wal_sender_timeout)
                    .await?;
            Ok::<_, RelayError>((prepared, started))
        };
        let (mut prepared, (stream, inbound, system)) = tokio::select! {
            started = self.told.alive_during(starting) => started?,
            () = self.stop.requested() => return Ok(()),
        };
        self.notice_what_was_passed_over(prepared.confirmed);
        let mut translator = self.translator()?;
        let tables = prepared.tables.iter().map(|outbox| &outbox.table);
        translator.knows(tables.map(|table| (table.id, table.name.clone())));
        let delivery = match &mut self.delivery {
            Some(delivery) => delivery,
            empty => empty.insert(Delivery::open(
                &self.sink,
                &self.config.delivery,
                self.told.clone(),
                self.rewound_by.take(),
                std::mem::take(&mut self.one_by_one),
            )?),
        };
        if let Continuity::Broken(why) = delivery.connected(system) {
            tracing::warn!(
                "The log is not the one read before: {why}. It is read from the slot's position, and events may come twice."
            );
        }
        self.watch
            .stream_started(std::mem::take(&mut prepared.found));
        self.told.streaming();
        let obstacle = Obstacle::new(self.told, &self.shapes, delivery.trouble());
        let pipeline = Pipeline {
            server: &prepared.server,
            on_update: self.config.router.on_update,
            upstream: Upstream::new(
                stream,
                Feedback::interval(source.status_interval, prepared.wal_sender_timeout),
                self.told.clone(),
            ),
            delivery,
            translator,
            stop: self.stop,
            transaction: None,
            updates: Seldom::default(),
            silence_limit: prepared.wal_sender_timeout,
            farewell: Farewell::new(
                self.watch.going(),
                self.config.delivery.server_shutdown_grace,
            ),
            watch: &self.watch,
            told: self.told,
            obstacle,
            poison: &self.config.poison,
            refused: &self.refused,
            skipping: self.skipping.as_mut(),
        };
        if std::mem::replace(&mut self.has_streamed, true) {
            self.told.reconnected();
        }
        say_what_goes_where(self.config, &prepared);
        pipeline.run(inbound).await
    }

    fn confirmed(&self) -> ConfirmedLsn {
        let delivery = self.delivery.as_ref();
        delivery.map_or(ConfirmedLsn::NONE, Delivery::confirmed)
    }

    /// Whether the last attempt got anything confirmed.
    fn has_progressed(&self) -> bool {
        self.confirmed() > self.confirmed_before
    }

    /// Keeps what is still good of the producer and of what is known of its records.
    async fn keep_or_drop_the_producer(&mut self, error: &RelayError) -> Result<(), RunError> {
        let Some(mut delivery) = self.delivery.take() else {
            return Ok(());
        };
        if !error.spares_the_producer() {
            if error.is_of_some_record() {
                // Any of those in flight may be the one.
                self.one_by_one = delivery.in_flight();
                tracing::warn!(
                    "One of {} records in flight was refused. They go again one by one, to see which it is: {error}.",
                    self.one_by_one
                );
            }
            delivery.close().await;
            if let RelayError::Sink(SinkError::Refused(failure)) = error
                && let Some((topic, bytes)) = self.sink.fit_batches(failure).await
            {
                tracing::warn!(
                    "Topic {topic} takes {bytes} bytes at once (max.message.bytes); batches are kept below that from now on."
                );
            }
            return Ok(());
        }
        delivery.disconnected();
        self.delivery = Some(match delivery.is_finished_by_one() {
            true => delivery
                .renewed(&self.sink, &self.config.delivery)
                .await
                .map_err(|error| RunError::Stopped(error.into()))?,
            false => delivery,
        });
        Ok(())
    }

    /// Whether the event that was to be passed over is.
    pub(super) fn has_skipped(&self) -> bool {
        let skipping = self.skipping.as_ref();
        skipping.is_some_and(Skipping::is_done)
    }

    /// Remembers an event that stops the connector.
    fn stopped_by(&mut self, error: &RelayError) {
        if let RelayError::Event(event) = error {
            self.stopped_at = Some(event.lsn);
        }
    }

    /// Counts the event that stopped the connector as passed over, if the slot is past it by
    /// another's doing (`outboxd skip`).
    fn notice_what_was_passed_over(&mut self, slot: Option<Lsn>) {
        let Some(lsn) = self.stopped_at else {
            return;
        };
        let is_past = slot.is_some_and(|confirmed| confirmed > lsn);
        if is_past && self.confirmed().lsn() <= lsn {
            self.told.passed_over();
            tracing::warn!(
                "The event that stopped the connector, in the transaction that commits at {lsn}, was skipped: the slot is past it."
            );
        }
        if is_past {
            self.stopped_at = None;
        }
    }

    /// Whether the error is about an event that was refused, and goes to the dead-letter topic
    /// when the stream comes to it again. Its dead letter can be refused too; then it stops.
    fn will_be_a_dead_letter(&mut self, error: &RelayError) -> bool {
        match (error, &self.config.poison) {
            (RelayError::Event(event), PoisonPolicy::DeadLetter(_)) => event
                .place
                .is_some_and(|place| self.refused.add(place, event.why.to_string())),
            _ => false,
        }
    }

    /// The last words: what is confirmed, and what is not.
    async fn end(&mut self) {
        let Some(delivery) = self.delivery.take() else {
            return;
        };
        match delivery.in_flight() {
            0 => tracing::info!(
                "Stopped. Everything sent is acknowledged, up to {}; the server keeps log from the slot's position until outboxd runs again.",
                delivery.confirmed()
            ),
            open => tracing::warn!(
                "Stopped before everything was acknowledged: {open} events are open and will be sent again at the next start; nothing is lost."
            ),
        }
        delivery.close().await;
    }

    fn translator(&self) -> Result<Translator, RelayError> {
        let config = self.config;
        let context = match &config.context_headers {
            None => Vec::new(),
            // Names, values and order of Debezium's `ExtendedHeaders` (contract of 3.4 and later).
            Some(context) => vec![
                (
                    "__debezium.context.connectorLogicalName",
                    context.logical_name.clone(),
                ),
                ("__debezium.context.taskId", "0".to_owned()),
                ("__debezium.context.connectorName", "postgresql".to_owned()),
                ("__debezium.context.runId", self.run_id.clone()),
            ],
        };
        Translator::new(
            config.router.clone(),
            config.convert,
            config.source.tables.clone(),
            &context,
        )
        .map(|mut translator| {
            if config.position_headers {
                translator.tell_positions();
            }
            translator
        })
        .map_err(RelayError::ContextHeaders)
    }
}

/// The one line that says what goes from where to where.
fn say_what_goes_where(config: &Config, prepared: &Prepared) {
    let source = &config.source;
    let tables: Vec<String> = prepared
        .tables
        .iter()
        .map(|outbox| outbox.table.name.to_string())
        .collect();
    let target = match &config.sink {
        SinkOptions::Kafka(kafka) => format!("Kafka at {}", kafka.bootstrap_servers),
        SinkOptions::Stdout => "standard output".to_owned(),
        SinkOptions::Null => "nowhere (outboxd.sink.type=null)".to_owned(),
    };
    tracing::info!(
        connector = %config.name,
        "Streaming {} of database {} at {} (slot {}, publication {}) to {target}, topics {}; {}.",
        tables.join(", "),
        source.database,
        prepared.server,
        source.slot,
        source.publication,
        config.router.route,
        config.converters(),
    );
}
