use tokio::task::JoinSet;

use super::backoff::Backoff;
use super::delivery::Delivery;
use super::error::{RelayError, RunError};
use super::feedback::Feedback;
use super::pipeline::Pipeline;
use super::prepare::{Prepared, prepare};
use super::seldom::Seldom;
use super::stop::Stop;
use super::translate::Translator;
use super::upstream::Upstream;
use super::watch::watch_slot;
use crate::config::Config;
use crate::model::ErrorClass;
use crate::ops;
use crate::sink::SinkOptions;
use crate::source::postgres::ReplicationStream;

/// Runs one connector until it is asked to stop, trying again whatever can mend itself. What
/// happens is told to `told`.
///
/// # Errors
/// When only a person can mend what is wrong. The slot keeps its position.
pub async fn run(config: &Config, stop: &Stop, told: &ops::Connector) -> Result<(), RunError> {
    // In a task of its own: the slot is watched whatever becomes of the relay. Ends with the set.
    let mut watching = JoinSet::new();
    watching.spawn(watch_slot(config.source.clone(), told.clone()));
    let mut connector = Connector {
        config,
        stop,
        told,
        run_id: uuid::Uuid::now_v7().to_string(),
        has_streamed: false,
        reconnects: false,
    };
    let mut backoff = Backoff::new();
    loop {
        let streamed_before = std::mem::take(&mut connector.has_streamed);
        connector.reconnects = streamed_before;
        let Err(error) = connector.attempt().await else {
            return Ok(());
        };
        let streamed_now = connector.has_streamed;
        connector.has_streamed |= streamed_before;
        if let RelayError::Overdue = error {
            return Ok(());
        }
        told.error(error.class());
        if error.class() == ErrorClass::Poison {
            told.poisoned();
        }
        match error.class() {
            ErrorClass::Fatal | ErrorClass::Poison if connector.has_streamed => {
                return Err(RunError::Stopped(error));
            }
            ErrorClass::Fatal | ErrorClass::Poison => return Err(RunError::Preflight(error)),
            ErrorClass::Retry | ErrorClass::Rewind => {}
        }
        if streamed_now {
            backoff.reset();
        }
        told.waiting(&Chain(&error).to_string());
        let wait = backoff.next();
        tracing::warn!(
            error = %Chain(&error),
            "Interrupted; trying again in {} ms from the slot's confirmed position.",
            wait.as_millis()
        );
        tokio::select! {
            () = stop.requested() => return Ok(()),
            () = told.alive_during(tokio::time::sleep(wait)) => {}
        }
    }
}

struct Connector<'c> {
    config: &'c Config,
    stop: &'c Stop,
    told: &'c ops::Connector,
    /// Names this process life in the context headers, as Debezium's task does.
    run_id: String,
    has_streamed: bool,
    /// Whether there was a stream before, which was lost.
    reconnects: bool,
}

impl Connector<'_> {
    /// One attempt: prepare, connect, relay. Ends well only when a stop was asked for.
    async fn attempt(&mut self) -> Result<(), RelayError> {
        let source = &self.config.source;
        let starting = async {
            let prepared = prepare(source).await?;
            let started = ReplicationStream::start(source, prepared.set_wal_sender_timeout).await?;
            Ok::<_, RelayError>((prepared, started))
        };
        let (prepared, (stream, inbound)) = tokio::select! {
            started = self.told.alive_during(starting) => started?,
            () = self.stop.requested() => return Ok(()),
        };
        let translator = self.translator()?;
        let mut delivery =
            Delivery::open(&self.config.sink, &self.config.delivery, self.told.clone())?;
        self.has_streamed = true;
        self.told.streaming();
        if self.reconnects {
            self.told.reconnected();
        }
        self.say_what_goes_where(&prepared);
        let pipeline = Pipeline {
            options: source,
            on_update: self.config.router.on_update,
            upstream: Upstream::new(
                stream,
                Feedback::interval(source.status_interval, prepared.wal_sender_timeout),
                self.told.clone(),
            ),
            delivery: &mut delivery,
            translator,
            stop: self.stop,
            transaction: None,
            updates: Seldom::default(),
        };
        let outcome = pipeline.run(inbound).await;
        match &outcome {
            Ok(()) => tracing::info!(
                "Stopped. Everything sent is acknowledged, and the slot stands at {}; the server keeps log from there until outboxd runs again.",
                delivery.confirmed()
            ),
            Err(RelayError::Overdue) => tracing::warn!(
                "Stopped before everything was acknowledged: {} events are open and will be sent again at the next start; nothing is lost.",
                delivery.in_flight()
            ),
            Err(_) => {}
        }
        delivery.close().await;
        outcome
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
        .map_err(RelayError::ContextHeaders)
    }

    /// The one line that says what goes from where to where.
    fn say_what_goes_where(&self, prepared: &Prepared) {
        let source = &self.config.source;
        let tables: Vec<String> = prepared
            .tables
            .iter()
            .map(|table| table.name.to_string())
            .collect();
        let target = match &self.config.sink {
            SinkOptions::Kafka(kafka) => format!("Kafka at {}", kafka.bootstrap_servers),
            SinkOptions::Stdout => "standard output".to_owned(),
            SinkOptions::Null => "nowhere (outboxd.sink.type=null)".to_owned(),
        };
        tracing::info!(
            connector = %self.config.name,
            "Streaming {} of database {} at {}:{} (slot {}, publication {}) to {target}, topics {}; {}.",
            tables.join(", "),
            source.database,
            source.host,
            source.port,
            source.slot,
            source.publication,
            self.config.router.route,
            self.config.converters(),
        );
    }
}

/// An error with everything it was caused by, in one line.
pub(crate) struct Chain<'e>(pub(crate) &'e (dyn std::error::Error + 'e));

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
