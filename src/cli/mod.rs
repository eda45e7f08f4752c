//! The command line: one command per file. The only place that prints.

mod check;
mod files;
mod run;
mod setup;
mod skip;
mod sources;
mod status;

use std::io::Write;
use std::process::ExitCode;
use std::sync::LazyLock;

use anyhow::Context;
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
    /// Look at both ends and report everything that is wrong, each with what mends it.
    ///
    /// Changes nothing. Exit code 0: `run` can start, warnings or not; 1: it would start and
    /// wait for something; 2: the configuration cannot be used; 3: it would refuse.
    Check(check::Check),
    /// Print, or apply, the SQL for table, role, publication and slot.
    Setup(setup::Setup),
    /// Tell where the slot stands: position, lag, retained log, and who reads it.
    ///
    /// Exit code 0: in good order; 1: the slot is missing, lost or cannot serve, or, with
    /// --for-upgrade, something is pending.
    Status(status::Status),
    /// Pass over one event that can never be sent, for good.
    ///
    /// Takes the connector's place: delivers what comes before the event, leaves it out, and ends
    /// when its transaction is confirmed. Waits while another outboxd reads the slot; one that
    /// has failed at the event does not. Exit code 0: skipped; 1: not skipped; 2: the
    /// configuration cannot be used; 3: something else has to be set right first.
    Skip(skip::Skip),
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
        Command::Check(check) => check.execute().into(),
        Command::Setup(setup) => setup.execute().into(),
        Command::Status(status) => status.execute().into(),
        Command::Skip(skip) => skip.execute().into(),
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

/// What a command was asked to tell. Whoever stops reading has read enough.
fn say(what: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{what}");
}

/// Runs a command that looks at the ends and comes to an end by itself.
fn block_on<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    Ok(runtime.block_on(work))
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
