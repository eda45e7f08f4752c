use std::path::PathBuf;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::sources::Sources;
use super::{Exit, complain, say};
use crate::config::{Config, OnFatal};
use crate::model::Lsn;
use crate::ops::Monitor;
use crate::relay::{self, RelayError, RunError, Skip as Skipped, Stop};

/// `outboxd skip`
#[derive(Debug, Args)]
pub(super) struct Skip {
    /// The connector's configuration, as for run.
    #[arg(value_name = "FILE")]
    connector: Option<PathBuf>,
    #[command(flatten)]
    sources: Sources,
    /// The commit position of the event's transaction, as the error about the event has it.
    #[arg(long, value_name = "LSN")]
    lsn: Lsn,
    /// The event's id, as the error about the event has it.
    #[arg(long = "id", value_name = "ID")]
    event: String,
    /// Why the event may be left out, for the log.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
}

impl Skip {
    pub(super) fn execute(self) -> Exit {
        let mut config = match self.sources.load(self.connector) {
            Ok(loaded) => loaded.config,
            Err(errors) => return complain(&errors, Exit::Usage),
        };
        // Whoever waits for this command mends what is in its way, and calls it again.
        config.on_fatal = OnFatal::Exit;
        let skip = Skipped {
            lsn: self.lsn,
            event: self.event,
            reason: self.reason,
        };
        match super::block_on(pass_over(&config, &skip)) {
            Ok(Ok(true)) => {
                say(&format_args!(
                    "Skipped the event {} in the transaction that commits at {}; 1 event is not sent. Everything before it is delivered, and the slot is past its transaction.",
                    skip.event, skip.lsn
                ));
                Exit::Clean
            }
            Ok(Ok(false)) => complain(&"stopped before the event was skipped", Exit::Failed),
            Ok(Err(error)) => {
                let (error, exit) = match error {
                    RunError::Preflight(error @ RelayError::Skip(_)) => (error, Exit::Failed),
                    RunError::Preflight(error) => (error, Exit::Preflight),
                    RunError::Stopped(error) => (error, Exit::Failed),
                };
                complain(&format_args!("{:#}", anyhow::Error::from(error)), exit)
            }
            Err(error) => complain(&format_args!("{error:#}"), Exit::Failed),
        }
    }
}

/// Whether it was passed over; not when Ctrl-C came first.
async fn pass_over(config: &Config, skip: &Skipped) -> Result<bool, RunError> {
    let requested = CancellationToken::new();
    let stop = Stop::new(requested.clone(), config.delivery.shutdown_timeout);
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            requested.cancel();
        }
    });
    let monitor = Monitor::empty();
    let connector = monitor.connector(&config.name, config.delivery.ready_max_unacknowledged);
    relay::skip(config, &stop, &connector, skip.clone()).await
}
