use std::path::PathBuf;

use clap::Args;

use super::files::{Files, FilesError};
use crate::config::{self, ConfigErrors, Loaded};

/// Where settings come from besides the connector's own file.
#[derive(Debug, Args)]
pub(super) struct Sources {
    /// What the Connect worker had: bootstrap.servers, converters, producer.*. Without it, what
    /// OUTBOXD_WORKER names.
    #[arg(long, value_name = "FILE")]
    worker: Option<PathBuf>,
    /// Overrides one setting; may be given many times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// Its files are not to be found.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// What they say is wrong.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
}

impl Sources {
    /// The configuration of one connector: the one named, or the one that is found.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(super) fn load(&self, connector: Option<PathBuf>) -> Result<Loaded, LoadError> {
        let environment = |name: &str| std::env::var(name).ok();
        let files = Files::find(connector, self.worker.clone(), &environment)?;
        let loaded = config::load(
            &files.connector,
            files.worker.as_deref(),
            &self.overrides,
            &environment,
        )?;
        Ok(loaded)
    }
}
