use super::{Finding, advice, sql};
use crate::source::postgres::{APPLICATION_NAME, ServerFacts, SlotFacts};

/// The oldest major version that is tested.
const OLDEST: i32 = 14;

/// The server's settings and limits. `slot` is ours, if there is one.
pub(super) fn findings(server: &ServerFacts, slot: Option<&SlotFacts>) -> Vec<Finding> {
    let mut findings = vec![version(server), wal_level(server)];
    findings.extend(recovery(server));
    findings.push(slots(server, slot.is_some()));
    findings.push(walsenders(server, slot.is_some_and(|slot| slot.active)));
    findings.extend(wal_sender_timeout(server));
    findings.extend(retention(server));
    findings.extend(idle_timeout(server));
    findings.extend(synchronous(server));
    findings.extend(failover(server, slot));
    findings
}

fn version(server: &ServerFacts) -> Finding {
    let major = server.version / 10_000;
    if major >= OLDEST {
        Finding::ok(format!("PostgreSQL {major}, database {}.", server.database))
    } else {
        Finding::warning(
            format!("The server is PostgreSQL {major}, and outboxd is made for 14 and later."),
            advice("upgrade the server"),
        )
    }
}

fn recovery(server: &ServerFacts) -> Option<Finding> {
    server.in_recovery.then(|| {
        Finding::wait(
            "The server is a standby (in recovery), and the slot lives on the primary.",
            advice("let database.hostname lead to the primary"),
        )
    })
}

fn wal_level(server: &ServerFacts) -> Finding {
    match server.shown("wal_level") {
        Some("logical") => Finding::ok("wal_level is logical."),
        other => Finding::error(
            format!(
                "wal_level is {}, and logical replication needs logical.",
                other.unwrap_or("unknown")
            ),
            sql(
                "ALTER SYSTEM SET wal_level = 'logical';  -- then restart the server; a managed service has a parameter for it",
            ),
        ),
    }
}

fn slots(server: &ServerFacts, ours_exists: bool) -> Finding {
    let limit = server.number("max_replication_slots").unwrap_or_default();
    let used = server.slots;
    if ours_exists || used < limit {
        return Finding::ok(format!("{used} of {limit} replication slots are in use."));
    }
    Finding::wait(
        format!(
            "All {limit} replication slots are in use (max_replication_slots={limit}), so none can be made; see SELECT slot_name, active FROM pg_replication_slots."
        ),
        sql(format!(
            "SELECT pg_drop_replication_slot('a slot that nobody needs');\n-- or, with a restart of the server:\nALTER SYSTEM SET max_replication_slots = {};",
            limit + 5
        )),
    )
}

fn walsenders(server: &ServerFacts, ours_runs: bool) -> Finding {
    let limit = server.number("max_wal_senders").unwrap_or_default();
    let used = server.walsenders;
    if ours_runs || used < limit {
        return Finding::ok(format!("{used} of {limit} walsenders are in use."));
    }
    Finding::wait(
        format!(
            "All {limit} walsenders are in use (max_wal_senders={limit}), so the log cannot be read; see SELECT pid, application_name FROM pg_stat_replication."
        ),
        sql(format!(
            "ALTER SYSTEM SET max_wal_senders = {};  -- then restart the server",
            limit + 5
        )),
    )
}

fn wal_sender_timeout(server: &ServerFacts) -> Option<Finding> {
    (server.number("wal_sender_timeout") == Some(0)).then(|| {
        Finding::warning(
            "wal_sender_timeout is 0: the server never notices that a reader is gone. outboxd sets 60 s for its own session; other readers stay as they are.",
            sql("ALTER SYSTEM SET wal_sender_timeout = '60s';\nSELECT pg_reload_conf();"),
        )
    })
}

fn retention(server: &ServerFacts) -> Option<Finding> {
    let limit = server.shown("max_slot_wal_keep_size")?;
    Some(if limit == "-1" {
        Finding::warning(
            "max_slot_wal_keep_size is -1: while outboxd does not run, the server keeps log for its slot without bound, and the disk can fill.",
            sql(
                "ALTER SYSTEM SET max_slot_wal_keep_size = '50GB';  -- what the disk can spare; beyond it the slot is lost\nSELECT pg_reload_conf();",
            ),
        )
    } else {
        Finding::ok(format!(
            "The server keeps at most {limit} of log for a slot (max_slot_wal_keep_size); beyond it the slot is lost."
        ))
    })
}

fn idle_timeout(server: &ServerFacts) -> Option<Finding> {
    const NAME: &str = "idle_replication_slot_timeout";
    (server.number(NAME)? > 0).then(|| {
        Finding::warning(
            format!(
                "{NAME} is {}: when outboxd is away for longer, the server gives up its slot, and events are lost.",
                server.shown(NAME).unwrap_or_default()
            ),
            sql(format!(
                "ALTER SYSTEM SET {NAME} = 0;\nSELECT pg_reload_conf();"
            )),
        )
    })
}

/// From 17 on standbys can keep a copy of a slot; a physical slot says that there are standbys.
fn failover(server: &ServerFacts, slot: Option<&SlotFacts>) -> Option<Finding> {
    (server.physical_slots > 0 && slot?.failover == Some(false)).then(|| {
        Finding::warning(
            "The server seems to have standbys, and they do not keep a copy of outboxd's slot (failover is off): after a failover the slot is missing.",
            advice("stop outboxd, and over a replication connection (psql \"dbname=… replication=database\") run ALTER_REPLICATION_SLOT slot (FAILOVER true); on the standby, sync_replication_slots = on"),
        )
    })
}

/// A walsender counts as a synchronous standby by its application name, whatever it does
/// (PostgreSQL documentation, "synchronous_standby_names").
fn synchronous(server: &ServerFacts) -> Option<Finding> {
    let setting = server.shown("synchronous_standby_names")?;
    let name = standby_names(setting)
        .into_iter()
        .find(|name| name == "*" || name.eq_ignore_ascii_case(APPLICATION_NAME))?;
    Some(Finding::error(
        format!(
            "synchronous_standby_names is \"{setting}\", where \"{name}\" matches outboxd's own sessions (application_name {APPLICATION_NAME}): commits of the whole database would wait for the broker."
        ),
        sql(
            "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (names_of_the_standbys)';  -- each by its name, no *\nSELECT pg_reload_conf();",
        ),
    ))
}

/// The names in `[FIRST | ANY] number (name, …)` or `name, …`; quoted ones without quotes.
fn standby_names(setting: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut quoted = false;
    for c in setting.chars() {
        match c {
            '"' => quoted = !quoted,
            // What came before is the method and the number.
            '(' if !quoted => names = vec![String::new()],
            ',' if !quoted => names.push(String::new()),
            ')' if !quoted => {}
            c if c.is_whitespace() && !quoted => {}
            c => {
                if let Some(name) = names.last_mut() {
                    name.push(c);
                }
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::super::planted;
    use super::*;

    fn with(name: &str, value: &str) -> Vec<Finding> {
        let mut facts = planted::facts();
        facts
            .server
            .settings
            .insert(name.to_owned(), (value.to_owned(), value.to_owned()));
        findings(&facts.server, facts.stream.slot.as_ref())
    }

    #[track_caller]
    fn says(findings: &[Finding], severity: Severity, words: &str) {
        assert!(
            findings
                .iter()
                .any(|finding| finding.severity == severity && finding.to_string().contains(words)),
            "{severity:?} {words} is not in {findings:#?}"
        );
    }

    #[test]
    fn every_setting_that_is_wrong_is_named_with_its_value() {
        use Severity::{Error, Warning};
        says(&with("wal_level", "replica"), Error, "wal_level is replica");
        says(&with("wal_sender_timeout", "0"), Warning, "60 s");
        says(
            &with("max_slot_wal_keep_size", "-1"),
            Warning,
            "the disk can fill",
        );
        says(
            &with("idle_replication_slot_timeout", "86400"),
            Warning,
            "idle_replication_slot_timeout is 86400",
        );
        says(
            &with("synchronous_standby_names", "ANY 1 (s1, OutboxD)"),
            Error,
            "commits of the whole database",
        );
    }

    #[test]
    fn limits_matter_only_when_something_of_ours_is_still_to_be_made() {
        let mut facts = planted::facts();
        facts.server.slots = 10;
        facts.server.walsenders = 10;
        let slot = facts.stream.slot.as_mut().unwrap();
        says(
            &findings(&facts.server, Some(slot)),
            Severity::Ok,
            "10 of 10 replication slots",
        );
        says(
            &findings(&facts.server, None),
            Severity::Wait,
            "max_replication_slots=10",
        );
        says(
            &findings(&facts.server, Some(slot)),
            Severity::Wait,
            "max_wal_senders=10",
        );
        slot.active = true;
        says(
            &findings(&facts.server, Some(slot)),
            Severity::Ok,
            "10 of 10 walsenders",
        );
    }

    #[test]
    fn a_slot_that_standbys_do_not_keep_is_warned_of() {
        let mut facts = planted::facts();
        facts.server.physical_slots = 1;
        let slot = facts.stream.slot.as_mut().unwrap();
        assert!(failover(&facts.server, Some(slot)).is_none());
        slot.failover = Some(false);
        let found = failover(&facts.server, Some(slot));
        says(found.as_slice(), Severity::Warning, "FAILOVER true");
        slot.failover = Some(true);
        assert!(failover(&facts.server, Some(slot)).is_none());
    }

    #[test]
    fn standby_names_are_read_in_every_form() {
        for (setting, names) in [
            ("", &[][..]),
            ("*", &["*"]),
            ("a, B", &["a", "B"]),
            ("2 (a, b)", &["a", "b"]),
            ("FIRST 1 (a)", &["a"]),
            ("ANY 2 (\"x (y), z\", outboxd)", &["x (y), z", "outboxd"]),
        ] {
            assert_eq!(standby_names(setting), names, "{setting}");
        }
    }
}
