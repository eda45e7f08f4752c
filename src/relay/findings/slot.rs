use postgres_protocol::escape::{escape_identifier, escape_literal};

use super::{Finding, SlotUse, advice, sql};
use crate::model::{SlotName, TableName};
use crate::source::postgres::{
    APPLICATION_NAME, PublicationFacts, SlotFacts, SnapshotMode, SourceOptions, StreamFacts,
};

/// The slot: every state in which it does not serve, or soon will not (rule R8).
pub(super) fn findings(
    stream: &StreamFacts,
    source: &SourceOptions,
    used: SlotUse,
) -> Vec<Finding> {
    let name = &source.slot;
    let Some(slot) = &stream.slot else {
        return vec![missing(stream, source, used)];
    };
    if let Some(of_another_kind) = of_another_kind(slot, name) {
        return vec![of_another_kind];
    }
    let mut findings = Vec::new();
    findings.extend(lost(slot, source));
    findings.extend(two_phase(slot, name));
    if findings.is_empty() {
        findings.extend(unready(slot, name));
        findings.extend(endangered(slot, name));
        findings.push(holder(slot, source));
    }
    findings
}

fn missing(stream: &StreamFacts, source: &SourceOptions, used: SlotUse) -> Finding {
    let (name, publication) = (&source.slot, &source.publication);
    let marks = |facts: &PublicationFacts| facts.marks(name);
    let marked = stream.publication.as_ref().is_some_and(marks);
    if !marked && used == SlotUse::Unknown {
        return Finding::ok(format!(
            "Replication slot {name} does not exist; `run` makes it at its first start."
        ));
    }
    let who = match marked {
        true => format!("the comment on publication {publication} says so"),
        false => "by this process".to_owned(),
    };
    let what = format!(
        "Replication slot {name} is missing, although it was in use ({who}): it was dropped, or the server was upgraded or failed over without it. Events committed since its last position were not sent, unless nothing was written; find them in the outbox table and write them again."
    );
    if source.snapshot == SnapshotMode::WhenNeeded {
        return Finding::warning(
            what,
            advice("`run` makes it anew, since snapshot.mode=when_needed asks for it"),
        );
    }
    Finding::error(
        what,
        sql(match marked {
            true => format!(
                "-- once what was missed is dealt with, forget the old slot, and `run` makes a new one:\nCOMMENT ON PUBLICATION {} IS NULL;",
                escape_identifier(publication.as_str())
            ),
            false => format!(
                "-- once what was missed is dealt with, make a new one:\nSELECT pg_create_logical_replication_slot({}, 'pgoutput');",
                escape_literal(name.as_str())
            ),
        }),
    )
}

/// Rows were there before the slot, and `snapshot.mode` says that they go first.
pub fn of_rows_before_the_slot(table: &TableName) -> Finding {
    Finding::error(
        format!(
            "Table {table} holds rows and there is no slot yet: snapshot.mode=initial would have to send them first, which outboxd cannot do yet."
        ),
        advice("set snapshot.mode=no_data to start with the rows written from now on"),
    )
}

fn of_another_kind(slot: &SlotFacts, name: &SlotName) -> Option<Finding> {
    let error = |what: String| {
        Some(Finding::error(
            format!("Replication slot {name} {what}."),
            advice("choose another slot.name"),
        ))
    };
    if slot.slot_type != "logical" {
        return error("is a physical one, and outboxd needs a logical one".to_owned());
    }
    if let Some(plugin) = slot.plugin.as_ref().filter(|plugin| *plugin != "pgoutput") {
        return error(format!(
            "uses the plugin {plugin}, and outboxd needs pgoutput"
        ));
    }
    let other = slot.database.as_ref().filter(|other| **other != slot.here);
    if let Some(other) = other {
        return error(format!(
            "belongs to database {other}, and database.dbname is {}",
            slot.here
        ));
    }
    if slot.temporary {
        return error("is a temporary one of another session".to_owned());
    }
    None
}

fn lost(slot: &SlotFacts, source: &SourceOptions) -> Option<Finding> {
    if !slot.is_lost() {
        return None;
    }
    let name = &source.slot;
    // 17 and later say why. 16 calls every reason a conflict, but forgets the position only when
    // it removed log (`InvalidatePossiblyObsoleteSlot`); before, that was the only reason.
    let (reason, cause) = match slot.invalidation_reason.as_deref() {
        Some(reason) => (reason, meaning(reason)),
        None if slot.conflicting == Some(true) && slot.restart_lsn.is_some() => {
            ("conflict with recovery", "")
        }
        None => ("wal_status=lost", meaning("wal_removed")),
    };
    let gap = match (slot.confirmed_flush_lsn, slot.server_lsn) {
        (Some(confirmed), Some(end)) => format!(
            " It had confirmed up to {confirmed}, and the log now ends at {end}: events committed in these {} bytes may be missing.",
            end.bytes_since(confirmed)
        ),
        _ => String::new(),
    };
    Some(Finding::error(
        format!("Replication slot {name} is lost ({reason}){cause}.{gap}"),
        sql(format!(
            "-- find what is missing by comparing the outbox table with the topics, write it again, then start anew:\nSELECT pg_drop_replication_slot({});\nCOMMENT ON PUBLICATION {} IS NULL;",
            escape_literal(name.as_str()),
            escape_identifier(source.publication.as_str())
        )),
    ))
}

/// `invalidation_reason` in words (PostgreSQL documentation, "pg_replication_slots").
fn meaning(reason: &str) -> &'static str {
    match reason {
        "wal_removed" => ": the server removed log that it still needed (max_slot_wal_keep_size)",
        "rows_removed" => ": the server removed catalog rows that it still needed",
        "wal_level_insufficient" => ": the primary's wal_level was lowered",
        "idle_timeout" => ": nobody read it for longer than idle_replication_slot_timeout",
        _ => "",
    }
}

fn two_phase(slot: &SlotFacts, name: &SlotName) -> Option<Finding> {
    slot.two_phase.then(|| {
        Finding::error(
            format!(
                "Replication slot {name} decodes prepared transactions (two_phase is on): the server would send rows at PREPARE TRANSACTION, which may still be rolled back."
            ),
            sql(format!(
                "-- stop writing, let everything be sent, then make it anew without two_phase:\nSELECT pg_drop_replication_slot({0});\nSELECT pg_create_logical_replication_slot({0}, 'pgoutput');",
                escape_literal(name.as_str())
            )),
        )
    })
}

fn unready(slot: &SlotFacts, name: &SlotName) -> Option<Finding> {
    slot.confirmed_flush_lsn.is_none().then(|| {
        Finding::wait(
            format!(
                "Replication slot {name} is not ready: whoever makes it waits for transactions that were open when it began."
            ),
            sql("SELECT pid, xact_start, query FROM pg_stat_activity WHERE backend_xid IS NOT NULL ORDER BY xact_start;  -- end the oldest"),
        )
    })
}

fn endangered(slot: &SlotFacts, name: &SlotName) -> Option<Finding> {
    (slot.wal_status.as_deref() == Some("unreserved")).then(|| {
        Finding::warning(
            format!(
                "Replication slot {name} is about to be lost (wal_status=unreserved): it holds {} bytes of log, more than max_slot_wal_keep_size.",
                slot.retained_bytes().unwrap_or_default()
            ),
            sql(
                "ALTER SYSTEM SET max_slot_wal_keep_size = '…';  -- larger, if the disk has room, until outboxd has caught up\nSELECT pg_reload_conf();",
            ),
        )
    })
}

fn holder(slot: &SlotFacts, source: &SourceOptions) -> Finding {
    let name = &source.slot;
    let Some(holder) = &slot.holder else {
        return Finding::ok(format!(
            "Replication slot {name} exists, and nobody reads it now."
        ));
    };
    let of_ours = holder.application.as_deref() == Some(APPLICATION_NAME);
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let who = format!(
        "the server process {} (application {}, role {}, client {})",
        holder.pid,
        known(&holder.application),
        known(&holder.role),
        holder.client.as_deref().unwrap_or("local")
    );
    if of_ours {
        return Finding::ok(format!(
            "Replication slot {name} is read by {who}; a second outboxd would wait until it is free."
        ));
    }
    Finding::wait(
        format!("Replication slot {name} is read by {who}, and only one can."),
        sql(format!(
            "SELECT pg_terminate_backend({});  -- or give this connector a slot.name of its own",
            holder.pid
        )),
    )
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::super::planted::{self, only};
    use super::*;
    use crate::source::postgres::{Facts, SlotHolder, slot_mark};

    /// The findings after `change` was made to a slot in good order.
    fn after(change: impl FnOnce(&mut SlotFacts)) -> Vec<Finding> {
        let mut facts = planted::facts();
        change(facts.stream.slot.as_mut().unwrap());
        findings(&facts.stream, &planted::config().source, SlotUse::Unknown)
    }

    #[test]
    fn every_state_has_words_of_its_own() {
        use Severity::{Error, Ok, Wait};
        only(&after(|_| {}), Ok, &["nobody reads it"]);
        let physical = |slot: &mut SlotFacts| slot.slot_type = "physical".to_owned();
        only(&after(physical), Error, &["physical", "slot.name"]);
        let plugin = |slot: &mut SlotFacts| slot.plugin = Some("test_decoding".to_owned());
        only(&after(plugin), Error, &["test_decoding"]);
        let database = |slot: &mut SlotFacts| slot.database = Some("other".to_owned());
        only(&after(database), Error, &["belongs to database other"]);
        only(&after(|slot| slot.two_phase = true), Error, &["PREPARE"]);
        let making = |slot: &mut SlotFacts| slot.confirmed_flush_lsn = None;
        assert!(
            after(making)
                .iter()
                .any(|f| f.severity == Wait && f.what.contains("not ready"))
        );
    }

    #[test]
    fn a_lost_slot_says_why_and_how_much_may_be_missing() {
        let lost = |slot: &mut SlotFacts| {
            slot.wal_status = Some("lost".to_owned());
            slot.restart_lsn = None;
        };
        only(
            &after(lost),
            Severity::Error,
            &[
                "wal_status=lost",
                "0/1000",
                "0/2000",
                "4096 bytes",
                "pg_drop_replication_slot",
            ],
        );
        let idle = |slot: &mut SlotFacts| {
            slot.invalidation_reason = Some("idle_timeout".to_owned());
        };
        only(
            &after(idle),
            Severity::Error,
            &["idle_replication_slot_timeout"],
        );
        let conflict = |slot: &mut SlotFacts| slot.conflicting = Some(true);
        only(
            &after(conflict),
            Severity::Error,
            &["conflict with recovery"],
        );
        only(
            &after(|slot| {
                lost(slot);
                conflict(slot);
            }),
            Severity::Error,
            &["wal_status=lost", "max_slot_wal_keep_size"],
        );
    }

    #[test]
    fn who_reads_it_is_named() {
        let read_by = |application: Option<&str>| {
            after(|slot| {
                slot.active = true;
                slot.holder = Some(SlotHolder {
                    pid: 77,
                    application: application.map(str::to_owned),
                    role: Some("relay".to_owned()),
                    client: None,
                    sent_lsn: None,
                });
            })
        };
        only(
            &read_by(Some("outboxd")),
            Severity::Ok,
            &["process 77", "second outboxd"],
        );
        only(
            &read_by(None),
            Severity::Wait,
            &[
                "process 77",
                "application unknown",
                "pg_terminate_backend(77)",
            ],
        );
    }

    #[test]
    fn a_missing_slot_is_an_error_only_when_it_was_in_use() {
        let mut facts = planted::facts();
        facts.stream.slot = None;
        let mut source = planted::config().source;
        let look =
            |facts: &Facts, source: &SourceOptions, used| findings(&facts.stream, source, used);
        only(
            &look(&facts, &source, SlotUse::Unknown),
            Severity::Ok,
            &["first start"],
        );
        only(
            &look(&facts, &source, SlotUse::InThisProcess),
            Severity::Error,
            &[
                "was in use (by this process)",
                "pg_create_logical_replication_slot('claims'",
            ],
        );
        facts.stream.publication.as_mut().unwrap().comment = Some(slot_mark(&source.slot));
        only(
            &look(&facts, &source, SlotUse::Unknown),
            Severity::Error,
            &["was in use (the comment", "COMMENT ON PUBLICATION"],
        );
        source.snapshot = SnapshotMode::WhenNeeded;
        only(
            &look(&facts, &source, SlotUse::Unknown),
            Severity::Warning,
            &["snapshot.mode=when_needed"],
        );
    }
}
