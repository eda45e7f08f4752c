use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::sources::Sources;
use super::{Exit, complain};
use crate::config::Config;
use crate::ops::{ListenError, Monitor, Server};
use crate::relay::{self, RunError, Stop};

/// `outboxd run`
#[derive(Debug, Args)]
pub(super) struct Run {
    /// The connector's configuration: Kafka Connect JSON, or the same as .properties. Without it,
    /// what OUTBOXD_CONFIG names, or the one *.json or *.properties file in /etc/outboxd.
    #[arg(value_name = "FILE")]
    connector: Option<PathBuf>,
    #[command(flatten)]
    sources: Sources,
}

impl Run {
    pub(super) fn execute(self) -> Exit {
        let loaded = match self.sources.load(self.connector) {
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
                    _ if error.is::<ListenError>() => Exit::Usage,
                    _ => Exit::Failed,
                };
                tracing::error!("outboxd ends: {error:#}");
                exit
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
        let monitor = Monitor::empty();
        let connector = monitor.connector(&config.name, config.delivery.ready_max_unacknowledged);
        if let Some(http) = &config.http {
            // Before anything is touched.
            let server = Server::listen(&http.host, http.port).await?;
            let address = server.address().context("cannot listen")?;
            tracing::info!(
                "Metrics and health at http://{address} (/metrics, /health/live, /health/ready)."
            );
            tokio::spawn(server.serve(monitor.clone()));
        }
        tokio::spawn(monitor.upkeep());
        Ok(relay::run(config, &stop, &connector).await?)
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
