use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use super::Reader;
use crate::model::{PublicationName, SlotName};
use crate::source::postgres::{
    Authorities, ClientCertificate, Password, PublicationAutocreate, ServerList, ServerListError,
    SnapshotMode, SourceOptions, SslMode, TableFilter, TlsOptions,
};

/// Where events come from.
pub(super) fn options(reader: &mut Reader<'_>) -> Option<SourceOptions> {
    let servers = servers(reader);
    let user = reader.required("database.user", "write a role with REPLICATION");
    let database = reader.required(
        "database.dbname",
        "write the database that holds the outbox",
    );
    let tls = tls(reader);
    // Seconds, as in pgjdbc.
    const MOST_SECONDS: u64 = 2_147_483;
    let connect_timeout = reader
        .number("driver.connectTimeout", 1..=MOST_SECONDS)
        .map(Duration::from_secs);
    let tcp_keepalive = reader.boolean("database.tcpKeepAlive");
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
        servers: servers?,
        user: user?.to_owned(),
        password: password(reader),
        database: database?.to_owned(),
        tls: tls?,
        connect_timeout: connect_timeout?,
        tcp_keepalive: tcp_keepalive?,
        slot: slot?,
        publication: publication?,
        autocreate: autocreate?,
        tables: tables?,
        snapshot: snapshot?,
        status_interval: status_interval?,
    })
}

/// One host or several, as libpq takes them.
fn servers(reader: &mut Reader<'_>) -> Option<ServerList> {
    const HOSTS: &str = "database.hostname";
    const PORTS: &str = "database.port";
    let hosts = reader.required(HOSTS, "write the database server's host name");
    let ports = reader.text(PORTS)?;
    // Without a host, what is wrong with the port is said nevertheless.
    match ServerList::new(hosts.unwrap_or("localhost"), ports) {
        Ok(servers) => hosts.map(|_| servers),
        Err(ServerListError::Count { .. }) if hosts.is_none() => None,
        Err(error) => {
            let (key, remedy) = match &error {
                ServerListError::EmptyHost(_) => {
                    (HOSTS, "write host names with commas between them")
                }
                ServerListError::Port(port) if !ports.contains(port.as_str()) => {
                    (HOSTS, "write the port as a number behind the host's colon")
                }
                ServerListError::Port(_) => (PORTS, "write a whole number from 1 to 65535"),
                ServerListError::Count { .. } => (
                    PORTS,
                    "write one port for all hosts, or as many ports as hosts",
                ),
            };
            reader.unusable(key, &error, remedy);
            None
        }
    }
}

/// Read again at each login, where it comes from config providers.
fn password(reader: &Reader<'_>) -> Option<Password> {
    const KEY: &str = "database.password";
    match reader.template(KEY).cloned() {
        Some(template) => Some(Password::read_by(move || {
            template.read().map(SecretString::from)
        })),
        None => reader
            .exact(KEY)
            .map(|password| Password::fixed(password.into())),
    }
}

/// Encryption, with libpq's meanings (PostgreSQL documentation, libpq, "Parameter Key Words").
fn tls(reader: &mut Reader<'_>) -> Option<TlsOptions> {
    const MODE: &str = "database.sslmode";
    const AUTHORITIES: &str = "database.sslrootcert";
    let mode = reader.choice(
        MODE,
        &[
            ("disable", Ok(SslMode::Disable)),
            ("allow", Ok(SslMode::Allow)),
            ("prefer", Ok(SslMode::Prefer)),
            ("require", Ok(SslMode::Require)),
            ("verify-ca", Ok(SslMode::VerifyCa)),
            ("verify-full", Ok(SslMode::VerifyFull)),
        ],
    );
    let client = client_certificate(reader);
    let authorities = reader.text(AUTHORITIES);
    let (mode, client) = (mode?, client?);
    let mode = match (authorities, mode) {
        // Everybody can have a certificate from a public authority; only the name tells apart.
        (Some("system"), _) if reader.written(MODE).is_none() => SslMode::VerifyFull,
        (Some("system"), weak) if weak != SslMode::VerifyFull => {
            reader.problem(
                MODE,
                "it is too weak for database.sslrootcert=system",
                "write verify-full",
            );
            return None;
        }
        (None, SslMode::VerifyCa) => {
            reader.problem(
                AUTHORITIES,
                "database.sslmode=verify-ca needs it: without it any public authority would do",
                "name the PEM file of the authority, or write database.sslmode=verify-full",
            );
            return None;
        }
        (_, mode) => mode,
    };
    Some(TlsOptions {
        mode,
        authorities: match authorities {
            None | Some("system") => Authorities::System,
            Some(file) => Authorities::File(file.into()),
        },
        client,
    })
}

/// `Some(None)` when there is none.
fn client_certificate(reader: &mut Reader<'_>) -> Option<Option<ClientCertificate>> {
    const CERTIFICATE: &str = "database.sslcert";
    const KEY: &str = "database.sslkey";
    match (reader.text(CERTIFICATE), reader.text(KEY)) {
        (Some(certificate), Some(key)) => Some(Some(ClientCertificate {
            certificate: PathBuf::from(certificate),
            key: PathBuf::from(key),
        })),
        (None, None) => Some(None),
        (Some(_), None) => {
            reader.problem(
                KEY,
                "it is required beside database.sslcert",
                "name the file of the certificate's private key",
            );
            None
        }
        (None, Some(_)) => {
            reader.problem(
                CERTIFICATE,
                "it is required beside database.sslkey",
                "name the file of the key's certificate",
            );
            None
        }
    }
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
            return Some(PublicationAutocreate::Unsaid);
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
            ("when_needed", Ok(SnapshotMode::WhenNeeded)),
            ("always", Err(INSTEAD)),
            ("initial_only", Err(INSTEAD)),
            ("configuration_based", Err(INSTEAD)),
            ("custom", Err(INSTEAD)),
            ("exported", Err(INSTEAD)),
        ],
    )
}
