use std::error::Error;
use std::io;

use tokio_postgres::error::SqlState;

use super::Server;
use super::pgoutput::DecodeError;
use crate::model::{ErrorClass, MatchError, PublicationName, SlotName, TableName};

/// What can go wrong between us and PostgreSQL.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// No connection came about, or it broke.
    #[error("the connection to PostgreSQL at {server} failed while {doing}")]
    Io {
        /// `host:port`.
        server: String,
        /// What was going on.
        doing: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The server answered with an error of its own.
    #[error("PostgreSQL refused while {doing}: {message} (SQLSTATE {code}){hint}")]
    Server {
        /// What was going on.
        doing: &'static str,
        /// The server's message.
        message: String,
        /// Its SQLSTATE.
        code: String,
        /// What to do about it, from the server or from us; empty, or beginning with a blank.
        hint: String,
    },
    /// The server said something the protocol does not allow here.
    #[error("PostgreSQL sent what the protocol does not allow while {doing}: {what}")]
    Protocol {
        /// What was going on.
        doing: &'static str,
        /// What was wrong.
        what: String,
    },
    /// A message of the stream could not be read.
    #[error("the replication stream cannot be decoded")]
    Decode(#[from] DecodeError),
    /// TLS settings cannot be used, or the server cannot do what they ask.
    #[error("{0}")]
    Tls(String),
    /// The server asks for a login we cannot or must not do.
    #[error("{0}")]
    Login(String),
    /// The slot is at a place of the log where the publication does not exist yet.
    #[error(
        "replication slot {slot} is at a place of the log that is older than publication {publication}, which was made, or made again, after it: the server cannot send the events that were written before the publication. Find out which these are by comparing the outbox table with the topics, and write them again; the slot passes over them with: SELECT pg_replication_slot_advance('{slot}', pg_current_wal_lsn())"
    )]
    PublicationIsYoung {
        /// The slot.
        slot: SlotName,
        /// The publication.
        publication: PublicationName,
    },
    /// Something is not as it must be, and only a person can change it.
    #[error("{0}")]
    Unusable(String),
    /// Something is not as it must be, but will be soon without us.
    #[error("{0}")]
    NotYet(String),
    /// None of several servers can be used now.
    #[error("no server of database.hostname can be used now: {}", each(.0))]
    NoServer(Vec<(String, SourceError)>),
}

impl SourceError {
    /// What to do about it (rule R9).
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Io { .. } | Self::NotYet(_) | Self::NoServer(_) => ErrorClass::Retry,
            Self::Server { code, .. } => class_of_sqlstate(code),
            Self::Protocol { .. } => ErrorClass::Retry,
            Self::Decode(_)
            | Self::Tls(_)
            | Self::Login(_)
            | Self::PublicationIsYoung { .. }
            | Self::Unusable(_) => ErrorClass::Fatal,
        }
    }

    /// Whether it is the login that failed: a password, name or certificate that is wrong, or
    /// TLS that one side cannot do. What worked before can be in the middle of being changed.
    pub fn is_login(&self) -> bool {
        match self {
            Self::Tls(_) | Self::Login(_) => true,
            Self::Server { code, .. } => ["28P01", "28000", "3D000"].contains(&code.as_str()),
            _ => false,
        }
    }

    /// The server's SQLSTATE, if it was the server that refused; of several servers, the first
    /// there is.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Server { code, .. } => Some(code),
            Self::NoServer(each) => each.iter().find_map(|(_, why)| why.sqlstate()),
            _ => None,
        }
    }

    /// Wraps an error of the ordinary SQL client.
    pub(super) fn from_client(
        doing: &'static str,
        server: &Server,
        error: tokio_postgres::Error,
    ) -> Self {
        match error.as_db_error() {
            Some(db) => Self::from_server(doing, db.code().code(), db.message(), db.hint()),
            None => Self::Io {
                server: server.to_string(),
                doing,
                source: io::Error::other(error),
            },
        }
    }

    /// A pattern of the table lists gives up on a table's name.
    pub(crate) fn unmatchable(table: &TableName, error: &MatchError) -> Self {
        Self::Unusable(format!(
            "table.include.list cannot be matched against {table}: {error}"
        ))
    }

    /// The TLS handshake came to an end that trying again does not change.
    pub(super) fn tls_refused(server: &Server, why: &io::Error) -> Self {
        Self::Tls(format!(
            "TLS with {server} failed: {why}; check database.sslmode, database.sslrootcert, database.sslcert, that the server has ssl=on, and that database.hostname is a name in its certificate"
        ))
    }

    /// Nothing on the list could be used; what stood against each.
    pub(super) fn none_usable(mut refusals: Vec<(String, Self)>) -> Self {
        match refusals.pop() {
            Some((_, only)) if refusals.is_empty() => only,
            last => {
                refusals.extend(last);
                Self::NoServer(refusals)
            }
        }
    }

    /// Wraps an error response, adding what to do where we know better than the server.
    pub(super) fn from_server(
        doing: &'static str,
        code: &str,
        message: &str,
        hint: Option<&str>,
    ) -> Self {
        if is_from_pooler(code, message) {
            return Self::Unusable(format!(
                "what database.hostname names looks like a connection pooler such as PgBouncer, not like PostgreSQL itself: while {doing} it said '{message}' (SQLSTATE {code}); logical replication needs the database's own host and port, so set database.hostname and database.port to them"
            ));
        }
        let advice = match code {
            "28P01" | "28000" => {
                Some("check database.user, database.password and the server's pg_hba.conf")
            }
            "3D000" => Some("check database.dbname"),
            "42501" => Some(
                "grant the role what is missing; the role needs LOGIN, REPLICATION, SELECT on the outbox table, and, to create a publication, CREATE on the database and ownership of the table",
            ),
            "53400" => Some("raise max_replication_slots, or drop a slot that is no longer used"),
            "53300" => Some(
                "raise max_connections or max_wal_senders, or end sessions that are no longer used",
            ),
            "55006" => {
                Some("another process reads this slot; give each connector a slot of its own")
            }
            _ => None,
        };
        let hint = advice
            .or(hint)
            .map(|text| format!("; {text}"))
            .unwrap_or_default();
        Self::Server {
            doing,
            message: message.to_owned(),
            code: code.to_owned(),
            hint,
        }
    }
}

/// Whether TLS itself said no, in contrast to a connection that broke during the handshake.
pub(super) fn is_tls_refusal(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        cause.is::<rustls::Error>()
            || cause
                .downcast_ref::<io::Error>()
                .and_then(io::Error::get_ref)
                .is_some_and(|inner| inner.is::<rustls::Error>())
    })
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Each server with what stood against it, down to the last cause.
fn each(refusals: &[(String, SourceError)]) -> String {
    let whole = |(server, error): &(String, SourceError)| {
        let causes: Vec<String> = causes(error).map(ToString::to_string).collect();
        let why = causes.join(": ");
        if why.contains(server) {
            why
        } else {
            format!("{server}: {why}")
        }
    };
    refusals.iter().map(whole).collect::<Vec<_>>().join("; ")
}

/// Whether only something between us and PostgreSQL says this: PgBouncer before 1.23 refuses
/// the startup parameter `replication`, Amazon RDS Proxy does so in words of its own, and what
/// leaves it out passes our command on to a session that does not know it.
fn is_from_pooler(code: &str, message: &str) -> bool {
    match code {
        "08P01" => message.contains("unsupported startup parameter"),
        "0A000" => message.contains("RDS Proxy"),
        "42601" => message.contains("START_REPLICATION"),
        _ => false,
    }
}

/// Sorts SQLSTATEs into those that pass by themselves and those that do not
/// (PostgreSQL documentation, "PostgreSQL Error Codes").
fn class_of_sqlstate(code: &str) -> ErrorClass {
    let passing = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::OBJECT_IN_USE,
        SqlState::QUERY_CANCELED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
    ];
    // Class 08 is connection exceptions, class 53 insufficient resources.
    if passing.iter().any(|state| state.code() == code)
        || code.starts_with("08")
        || code.starts_with("53")
    {
        ErrorClass::Retry
    } else {
        ErrorClass::Fatal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_retried() {
        for code in [
            "57P01", "57P02", "57P03", "08006", "08P01", "53300", "53400", "55006", "40001",
            "57014",
        ] {
            assert_eq!(class_of_sqlstate(code), ErrorClass::Retry, "{code}");
        }
        for code in [
            "55000", "42704", "42501", "0A000", "58P01", "28P01", "3D000", "XX000",
        ] {
            assert_eq!(class_of_sqlstate(code), ErrorClass::Fatal, "{code}");
        }
    }

    #[test]
    fn a_pooler_is_named_and_not_tried_again() {
        for (code, message) in [
            ("08P01", "unsupported startup parameter: replication"),
            (
                "0A000",
                "Feature not supported: RDS Proxy currently doesn't support the option replication",
            ),
            ("42601", "syntax error at or near \"START_REPLICATION\""),
        ] {
            let error = SourceError::from_server("logging in", code, message, None);
            assert_eq!(error.class(), ErrorClass::Fatal);
            let said = error.to_string();
            assert!(said.contains("pooler") && said.contains(message), "{said}");
        }
    }

    #[test]
    fn of_several_servers_each_is_named_with_its_reason() {
        let refused = |server: &str| {
            let error = SourceError::Io {
                server: server.to_owned(),
                doing: "connecting",
                source: io::ErrorKind::ConnectionRefused.into(),
            };
            (server.to_owned(), error)
        };
        let starting = SourceError::from_server("logging in", "57P03", "starting up", None);
        let error = SourceError::none_usable(vec![refused("a:1"), ("b:1".to_owned(), starting)]);
        assert_eq!(
            error.to_string(),
            "no server of database.hostname can be used now: the connection to PostgreSQL at a:1 failed while connecting: connection refused; b:1: PostgreSQL refused while logging in: starting up (SQLSTATE 57P03)"
        );
        assert_eq!(
            (error.class(), error.sqlstate()),
            (ErrorClass::Retry, Some("57P03"))
        );
        let single = SourceError::none_usable(vec![refused("a:1")]);
        assert!(matches!(single, SourceError::Io { .. }));
    }

    #[test]
    fn known_refusals_say_what_to_do() {
        let error = SourceError::from_server(
            "logging in",
            "28P01",
            "password authentication failed",
            None,
        );
        assert!(error.to_string().contains("database.password"), "{error}");
    }
}
