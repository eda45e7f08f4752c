use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::{self, ConfigErrors, Loaded};

/// Where settings come from besides the connector's own file.
#[derive(Debug, Args)]
pub(super) struct Sources {
    /// What the Connect worker had: bootstrap.servers, converters, producer.*.
    #[arg(long, value_name = "FILE")]
    worker: Option<PathBuf>,
    /// Overrides one setting; may be given many times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

impl Sources {
    /// The configuration of one connector.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(super) fn load(&self, connector: &Path) -> Result<Loaded, ConfigErrors> {
        let environment = |name: &str| std::env::var(name).ok();
        config::load(
            connector,
            self.worker.as_deref(),
            &self.overrides,
            &environment,
        )
    }
}
