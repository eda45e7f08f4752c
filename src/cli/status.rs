use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::sources::Sources;
use super::{Exit, block_on, complain, say};
use crate::config::Config;
use crate::relay::findings::{self, Finding, Severity, SlotUse};
use crate::source::postgres::{
    Database, Facts, Pending, ServerFacts, SlotFacts, SlotHolder, SourceError,
};

/// `outboxd status`
#[derive(Debug, Args)]
pub(super) struct Status {
    /// The connector's configuration: Kafka Connect JSON, or the same as .properties.
    #[arg(value_name = "FILE")]
    connector: Option<PathBuf>,
    #[command(flatten)]
    sources: Sources,
    /// Tell it as one JSON object, whose keys stay as they are.
    #[arg(long)]
    json: bool,
    /// Tell whether nothing is pending, so that pg_upgrade loses nothing: outboxd is stopped,
    /// and everything written is delivered.
    #[arg(long)]
    for_upgrade: bool,
}

impl Status {
    pub(super) fn execute(self) -> Exit {
        let config = match self.sources.load(self.connector.clone()) {
            Ok(loaded) => loaded.config,
            Err(errors) => return complain(&errors, Exit::Usage),
        };
        let standing = match block_on(look(&config)) {
            Ok(Ok(standing)) => standing,
            Ok(Err(error)) => {
                return complain(&findings::of_login(&error, &config.source), Exit::Failed);
            }
            Err(error) => return complain(&error, Exit::Failed),
        };
        if self.json {
            match serde_json::to_string_pretty(&standing) {
                Ok(text) => say(&text),
                Err(error) => return complain(&error, Exit::Failed),
            }
        } else {
            say(&standing.text());
            if self.for_upgrade {
                say(&standing.upgrade_in_words());
            }
        }
        let well = standing.problems.is_empty() && standing.exists;
        match self.for_upgrade {
            true if !standing.ready_for_upgrade => Exit::Failed,
            false if !well => Exit::Failed,
            _ => Exit::Clean,
        }
    }
}

async fn look(config: &Config) -> Result<Standing, SourceError> {
    let source = &config.source;
    let database = Database::connect(source).await?;
    let facts = database.facts(source).await?;
    let pending = database.pending(&facts.stream, source).await;
    let pending = pending.unwrap_or_else(|error| Pending::Unknown(error.to_string()));
    Ok(Standing::new(&facts, pending, config))
}

/// Where a slot stands. Its JSON form is what scripts read: keys are added, never renamed.
/// Positions are as the server prints them; what is not known is null.
#[derive(Debug, Serialize)]
struct Standing {
    slot: String,
    exists: bool,
    active: bool,
    active_pid: Option<i32>,
    application: Option<String>,
    role: Option<String>,
    client: Option<String>,
    inactive_since: Option<String>,
    wal_status: Option<String>,
    invalidation_reason: Option<String>,
    confirmed_lsn: Option<String>,
    restart_lsn: Option<String>,
    current_lsn: Option<String>,
    /// Log since the position confirmed last.
    confirmed_lag_bytes: Option<u64>,
    /// Log that the reader has not been sent yet.
    unread_bytes: Option<u64>,
    /// Log that the server keeps because of the slot.
    retained_wal_bytes: Option<u64>,
    /// Log that may still be written before the slot is in danger; null without a limit.
    safe_wal_bytes: Option<i64>,
    /// The limit as the server shows it; -1 is none.
    max_slot_wal_keep_size: Option<String>,
    /// Events still to be sent; null when it cannot be told.
    pending_events: Option<u64>,
    /// Whether there may be more of them than that.
    pending_events_more: bool,
    /// Why it cannot be told.
    pending_events_unknown: Option<String>,
    ready_for_upgrade: bool,
    /// `server_version_num`.
    server_version: i32,
    /// What is wrong with the slot.
    problems: Vec<String>,
}

impl Standing {
    fn new(facts: &Facts, pending: Pending, config: &Config) -> Self {
        let missing = SlotFacts::default();
        let slot = facts.stream.slot.as_ref();
        let exists = slot.is_some();
        let slot = slot.unwrap_or(&missing);
        let holder = slot.holder.as_ref();
        let nothing_pending = pending == Pending::Rows(0);
        let (pending_events, pending_events_more, pending_events_unknown) = match pending {
            Pending::Rows(rows) => (Some(rows), false, None),
            Pending::AtLeast(rows) => (Some(rows), true, None),
            Pending::Unknown(why) => (None, false, Some(why)),
        };
        let problems = problems(facts, config);
        let ServerFacts { version, .. } = facts.server;
        Self {
            slot: config.source.slot.to_string(),
            exists,
            active: slot.active,
            active_pid: holder.map(|holder| holder.pid),
            application: holder.and_then(|holder| holder.application.clone()),
            role: holder.and_then(|holder| holder.role.clone()),
            client: holder.and_then(|holder| holder.client.clone()),
            inactive_since: slot.inactive_since.clone(),
            wal_status: slot.wal_status.clone(),
            invalidation_reason: slot.invalidation_reason.clone(),
            confirmed_lsn: slot.confirmed_flush_lsn.map(|lsn| lsn.to_string()),
            restart_lsn: slot.restart_lsn.map(|lsn| lsn.to_string()),
            current_lsn: slot.server_lsn.map(|lsn| lsn.to_string()),
            confirmed_lag_bytes: slot.confirmed_lag_bytes(),
            unread_bytes: unread(slot, holder),
            retained_wal_bytes: slot.retained_bytes(),
            safe_wal_bytes: slot.safe_wal_size,
            max_slot_wal_keep_size: facts
                .server
                .shown("max_slot_wal_keep_size")
                .map(str::to_owned),
            pending_events,
            pending_events_more,
            pending_events_unknown,
            ready_for_upgrade: exists && problems.is_empty() && !slot.active && nothing_pending,
            server_version: version,
            problems,
        }
    }

    fn text(&self) -> String {
        let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), in_words);
        let mut lines = vec![format!("slot            {}", self.slot)];
        if self.exists {
            let or_unknown = |text: &Option<String>| text.clone().unwrap_or("unknown".to_owned());
            lines.push(match self.active_pid {
                Some(pid) => format!(
                    "read by         {} (server process {pid}, role {}, client {})",
                    or_unknown(&self.application),
                    or_unknown(&self.role),
                    self.client.as_deref().unwrap_or("local")
                ),
                None => match &self.inactive_since {
                    Some(since) => format!("read by         nobody since {since}"),
                    None => "read by         nobody".to_owned(),
                },
            });
            lines.extend([
                format!(
                    "confirmed       {}, {} before the end of the log at {}",
                    or_unknown(&self.confirmed_lsn),
                    bytes(self.confirmed_lag_bytes),
                    or_unknown(&self.current_lsn)
                ),
                format!("still to read   {} of log", bytes(self.unread_bytes)),
                format!("still to send   {}", self.pending_in_words()),
                format!(
                    "log retained    {}, {}",
                    bytes(self.retained_wal_bytes),
                    self.limit_in_words()
                ),
                format!("wal_status      {}", or_unknown(&self.wal_status)),
            ]);
        }
        if !self.exists {
            lines.push("state           missing".to_owned());
        }
        lines.extend(self.problems.iter().map(|problem| format!("\n{problem}")));
        lines.join("\n")
    }

    fn pending_in_words(&self) -> String {
        match (self.pending_events, &self.pending_events_unknown) {
            (Some(events), _) if self.pending_events_more => format!("{events} events or more"),
            (Some(1), _) => "1 event".to_owned(),
            (Some(events), _) => format!("{events} events"),
            (None, Some(why)) => format!("not known: {why}"),
            (None, None) => "not known".to_owned(),
        }
    }

    fn limit_in_words(&self) -> String {
        match self.max_slot_wal_keep_size.as_deref() {
            None | Some("-1") => "without a limit (max_slot_wal_keep_size=-1)".to_owned(),
            Some(limit) => {
                let safe = u64::try_from(self.safe_wal_bytes.unwrap_or_default());
                format!(
                    "of at most {limit} (max_slot_wal_keep_size); {} more are safe",
                    in_words(safe.unwrap_or_default())
                )
            }
        }
    }

    fn upgrade_in_words(&self) -> String {
        if self.ready_for_upgrade {
            let slot = match self.server_version {
                ..170_000 => {
                    "pg_upgrade does not keep the slot: make it anew (sql/slot.sql) before anybody writes again"
                }
                _ => "pg_upgrade keeps the slot",
            };
            return format!(
                "\nSafe to upgrade: nothing is pending, as long as nobody writes any more. {slot}."
            );
        }
        let why = if !self.exists {
            "there is no slot".to_owned()
        } else if self.active {
            "outboxd still reads the slot; let the application stop writing, stop outboxd (it delivers what is in flight), and ask again".to_owned()
        } else {
            format!(
                "still to send: {}; start outboxd and let it catch up",
                self.pending_in_words()
            )
        };
        format!("\nNot safe to upgrade: {why}.")
    }
}

/// What keeps the slot from serving, now or ever.
fn problems(facts: &Facts, config: &Config) -> Vec<String> {
    findings::of_slot(&facts.stream, &config.source, SlotUse::Unknown)
        .iter()
        .filter(|finding| finding.severity > Severity::Ok)
        .map(Finding::to_string)
        .collect()
}

/// What a reader was sent counts as read; without one, what was confirmed does.
fn unread(slot: &SlotFacts, holder: Option<&SlotHolder>) -> Option<u64> {
    let read = holder
        .and_then(|holder| holder.sent_lsn)
        .or(slot.confirmed_flush_lsn)?;
    Some(slot.server_lsn?.bytes_since(read))
}

fn in_words(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    UNITS.iter().find(|(_, size)| bytes >= *size).map_or_else(
        || format!("{bytes} bytes"),
        |(unit, size)| format!("{}.{} {unit}", bytes / size, bytes % size * 10 / size),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_in_the_largest_unit() {
        for (bytes, words) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (50 << 30, "50.0 GiB"),
        ] {
            assert_eq!(in_words(bytes), words);
        }
    }
}
