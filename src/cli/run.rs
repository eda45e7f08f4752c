use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::files::Files;
use super::{Exit, complain};
use crate::config::{self, Config};
use crate::relay::{self, RunError, Stop};

/// `outboxd run`
#[derive(Debug, Args)]
pub(super) struct Run {
    /// The connector's configuration: Kafka Connect JSON, or the same as .properties. Without it,
    /// what OUTBOXD_CONFIG names, or the one *.json or *.properties file in /etc/outboxd.
    #[arg(value_name = "FILE")]
    connector: Option<PathBuf>,
    /// What the Connect worker had: bootstrap.servers, converters, producer.*. Without it, what
    /// OUTBOXD_WORKER names.
    #[arg(long, value_name = "FILE")]
    worker: Option<PathBuf>,
    /// Overrides one setting; may be given many times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

impl Run {
    pub(super) fn execute(self) -> Exit {
        let environment = |name: &str| std::env::var(name).ok();
        let files = match Files::find(self.connector, self.worker, &environment) {
            Ok(files) => files,
            Err(error) => return complain(&error, Exit::Usage),
        };
        let loaded = match config::load(
            &files.connector,
            files.worker.as_deref(),
            &self.overrides,
            &environment,
        ) {
            Ok(loaded) => loaded,
            Err(errors) => return complain(&errors, Exit::Usage),
        };
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        match run(&loaded.config) {
            Ok(()) => Exit::Clean,
            Err(error) => {
                let exit = match error.downcast_ref::<RunError>() {
                    Some(RunError::Preflight(_)) => Exit::Preflight,
                    _ => Exit::Failed,
                };
                tracing::error!(error = format!("{error:#}"), "outboxd ends.");
                complain(&format_args!("{error:#}"), exit)
            }
        }
    }
}

/// Nothing starts a thread before the configuration is known to be good.
fn run(config: &Config) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // The relay is one task; the second worker keeps signals and SQL sessions moving.
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let requested = CancellationToken::new();
        let stop = Stop::new(requested.clone(), config.delivery.shutdown_timeout);
        tokio::spawn(listen_for_signals(
            signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
            requested,
        ));
        Ok(relay::run(config, &stop).await?)
    })
}

/// The first signal asks for a clean end, the second ends at once: whoever sends it twice
/// does not want to wait, and nothing is lost by it.
async fn listen_for_signals(
    mut terminate: Signal,
    mut interrupt: Signal,
    requested: CancellationToken,
) {
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if requested.is_cancelled() {
            tracing::warn!("Asked to stop a second time; leaving at once.");
            std::process::exit(Exit::Failed as i32);
        }
        tracing::info!("Asked to stop; letting what is in flight arrive.");
        requested.cancel();
    }
}
