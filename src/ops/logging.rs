use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// One readable line an event.
    Text,
    /// One JSON object an event.
    Json,
}

/// Sends log lines to standard error. `OUTBOXD_LOG` filters them as `RUST_LOG` does elsewhere
/// (`info` without it).
///
/// # Errors
/// When `OUTBOXD_LOG` cannot be understood, with the reason.
pub fn init(format: LogFormat) -> Result<(), String> {
    let directives = std::env::var("OUTBOXD_LOG").unwrap_or_else(|_| "info".to_owned());
    let filter = EnvFilter::try_new(&directives).map_err(|error| {
        format!("OUTBOXD_LOG: {error}; give a level such as info, or module=level pairs")
    })?;
    let text = match format {
        LogFormat::Text => true,
        LogFormat::Json => false,
        LogFormat::Auto => std::io::stderr().is_terminal(),
    };
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(text && std::io::stderr().is_terminal());
    if text {
        lines.with_target(false).init();
    } else {
        lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .init();
    }
    Ok(())
}
