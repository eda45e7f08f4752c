use std::error::Error;
use std::io;

use tokio_postgres::error::SqlState;

use super::pgoutput::DecodeError;
use crate::model::{ErrorClass, MatchError, TableName};

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
    /// Something is not as it must be, and only a person can change it.
    #[error("{0}")]
    Unusable(String),
    /// Something is not as it must be, but will be soon without us.
    #[error("{0}")]
    NotYet(String),
}

impl SourceError {
    /// What to do about it (rule R9).
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Io { .. } | Self::NotYet(_) => ErrorClass::Retry,
            Self::Server { code, .. } => class_of_sqlstate(code),
            Self::Protocol { .. } => ErrorClass::Retry,
            Self::Decode(_) | Self::Tls(_) | Self::Login(_) | Self::Unusable(_) => {
                ErrorClass::Fatal
            }
        }
    }

    /// The server's SQLSTATE, if it was the server that refused.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Server { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Wraps an error of the ordinary SQL client.
    pub(super) fn from_client(
        doing: &'static str,
        server: &str,
        error: tokio_postgres::Error,
    ) -> Self {
        if let Some(db) = error.as_db_error() {
            return Self::from_server(doing, db.code().code(), db.message(), db.hint());
        }
        // The client keeps its kinds to itself, but not their names.
        let kind = error.to_string();
        let cause = error.source().map_or_else(String::new, ToString::to_string);
        if is_tls_refusal(&error) || (kind == "error performing TLS handshake" && !is_io(&error)) {
            return Self::tls_refused(server, &cause);
        }
        match kind.as_str() {
            "authentication error" | "invalid configuration" => Self::Login(format!(
                "the login at {server} is not possible: {cause}; check database.password and the server's pg_hba.conf"
            )),
            _ => Self::Io {
                server: server.to_owned(),
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
    pub(super) fn tls_refused(server: &str, why: &str) -> Self {
        Self::Tls(format!(
            "TLS with {server} failed: {why}; check database.sslmode, database.sslrootcert, that the server has ssl=on, and that database.hostname is a name in its certificate"
        ))
    }

    /// Wraps an error response, adding what to do where we know better than the server.
    pub(super) fn from_server(
        doing: &'static str,
        code: &str,
        message: &str,
        hint: Option<&str>,
    ) -> Self {
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

fn is_io(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| cause.is::<io::Error>())
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
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
