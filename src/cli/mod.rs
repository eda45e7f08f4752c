//! The command line: one command per file. The only place that prints.

mod files;
mod run;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{Parser, Subcommand};

use crate::ops::LogFormat;

/// How the process ends; part of the contract with whoever starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// A clean stop.
    Clean = 0,
    /// Failed while running.
    Failed = 1,
    /// Bad usage or configuration.
    Usage = 2,
    /// Something outside has to be set right before it can start.
    Preflight = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Delivers transactional outboxes from PostgreSQL to Kafka, as Debezium's Outbox Event Router
/// would.
#[derive(Debug, Parser)]
#[command(version = version(), arg_required_else_help = true)]
struct Arguments {
    /// How log lines on standard error look; OUTBOXD_LOG=debug shows more of them.
    #[arg(long, value_enum, default_value_t, global = true)]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Relay the outbox until stopped by SIGTERM or Ctrl-C.
    Run(run::Run),
}

/// Reads the process's arguments and does what they say.
pub fn main() -> ExitCode {
    // clap ends the process itself: with 0 after --help and --version, with 2 on bad usage.
    let arguments = Arguments::parse();
    if let Err(why) = crate::ops::init(arguments.log_format) {
        return complain(&why, Exit::Usage).into();
    }
    match arguments.command {
        Command::Run(run) => run.execute().into(),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "a message to the person who typed the command"
)]
fn complain(what: &dyn std::fmt::Display, exit: Exit) -> Exit {
    eprintln!("outboxd: {what}");
    exit
}

/// Our version and that of the Kafka client compiled in.
fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        format!(
            "{} (librdkafka {})",
            env!("CARGO_PKG_VERSION"),
            crate::sink::client_library_version()
        )
    });
    &VERSION
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
