use std::path::PathBuf;

use secrecy::SecretString;

use super::Reader;
use crate::model::{PublicationName, SlotName};
use crate::source::postgres::{
    PublicationAutocreate, SnapshotMode, SourceOptions, SslMode, TableFilter, TlsOptions,
};

/// Where events come from.
pub(super) fn options(reader: &mut Reader<'_>) -> Option<SourceOptions> {
    let host = reader.required("database.hostname", "write the database server's host name");
    let port = reader.number("database.port", 1..=u64::from(u16::MAX));
    let user = reader.required("database.user", "write a role with REPLICATION");
    let database = reader.required(
        "database.dbname",
        "write the database that holds the outbox",
    );
    let mode = reader.choice(
        "database.sslmode",
        &[
            ("disable", Ok(SslMode::Disable)),
            (
                "allow",
                Err("write prefer, or require to insist on encryption"),
            ),
            ("prefer", Ok(SslMode::Prefer)),
            ("require", Ok(SslMode::Require)),
            ("verify-ca", Err("write verify-full")),
            ("verify-full", Ok(SslMode::VerifyFull)),
        ],
    );
    let slot = reader.parsed("slot.name", "rename the slot", SlotName::new);
    let publication = reader.parsed("publication.name", "rename the publication", |name| {
        PublicationName::new(name)
    });
    reader.choice(
        "plugin.name",
        &[
            ("pgoutput", Ok(())),
            (
                "decoderbufs",
                Err("write pgoutput, which is part of PostgreSQL; the slot has to be created anew"),
            ),
            (
                "wal2json",
                Err("write pgoutput, which is part of PostgreSQL; the slot has to be created anew"),
            ),
        ],
    );
    let tables = tables(reader);
    let autocreate = autocreate(reader);
    let snapshot = snapshot(reader);
    let status_interval = reader.milliseconds("status.update.interval.ms", 1);
    Some(SourceOptions {
        host: host?.to_owned(),
        port: port.and_then(|port| u16::try_from(port).ok())?,
        user: user?.to_owned(),
        password: reader.exact("database.password").map(SecretString::from),
        database: database?.to_owned(),
        tls: TlsOptions {
            mode: mode?,
            root_cert: reader.text("database.sslrootcert").map(PathBuf::from),
        },
        slot: slot?,
        publication: publication?,
        autocreate: autocreate?,
        tables: tables?,
        snapshot: snapshot?,
        status_interval: status_interval?,
    })
}

fn tables(reader: &mut Reader<'_>) -> Option<TableFilter> {
    const INCLUDE: &str = "table.include.list";
    const EXCLUDE: &str = "table.exclude.list";
    let (include, exclude) = (reader.text(INCLUDE), reader.text(EXCLUDE));
    match TableFilter::new(include, exclude) {
        Ok(filter) => Some(filter),
        Err(error) => {
            let key = if include.is_some() { INCLUDE } else { EXCLUDE };
            reader.unusable(key, &error, "correct the list");
            None
        }
    }
}

/// Debezium's default is `all_tables`, which takes a superuser and sends every table of the
/// database through the log; it is done only when asked for.
fn autocreate(reader: &mut Reader<'_>) -> Option<PublicationAutocreate> {
    const KEY: &str = "publication.autocreate.mode";
    if reader.text(KEY).is_none() && reader.may_be_absent(KEY) {
        if reader.text("table.include.list").is_some() {
            return Some(PublicationAutocreate::Filtered);
        }
        reader.problem(
            KEY,
            "without table.include.list it has no default, since Debezium's would publish every table",
            "name the outbox in table.include.list, or write disabled and create the publication yourself",
        );
        return None;
    }
    reader.choice(
        KEY,
        &[
            ("disabled", Ok(PublicationAutocreate::Disabled)),
            ("filtered", Ok(PublicationAutocreate::Filtered)),
            ("all_tables", Ok(PublicationAutocreate::AllTables)),
            ("no_tables", Ok(PublicationAutocreate::NoTables)),
        ],
    )
}

fn snapshot(reader: &mut Reader<'_>) -> Option<SnapshotMode> {
    const KEY: &str = "snapshot.mode";
    const INSTEAD: &str = "write no_data, or initial";
    if reader
        .written(KEY)
        .is_some_and(|mode| mode.eq_ignore_ascii_case("never"))
    {
        reader.warning(
            KEY,
            "never is an old name, which Debezium 3.3 and later refuse",
            "write no_data",
        );
        return Some(SnapshotMode::NoData);
    }
    reader.choice(
        KEY,
        &[
            ("no_data", Ok(SnapshotMode::NoData)),
            ("initial", Ok(SnapshotMode::Initial)),
            ("when_needed", Ok(SnapshotMode::Initial)),
            ("always", Err(INSTEAD)),
            ("initial_only", Err(INSTEAD)),
            ("configuration_based", Err(INSTEAD)),
            ("custom", Err(INSTEAD)),
            ("exported", Err(INSTEAD)),
        ],
    )
}
