use postgres_protocol::escape::escape_identifier;

use super::{Finding, Severity, advice, sql};
use crate::model::ErrorClass;
use crate::relay::error::Chain;
use crate::source::postgres::{SourceError, SourceOptions};

/// The database cannot be reached, or does not let us in.
pub fn of_login(error: &SourceError, source: &SourceOptions) -> Finding {
    let what = format!("The database cannot be used: {}", Chain(error));
    let role = escape_identifier(&source.user);
    let mend = match error.sqlstate() {
        // Both are "role may not log in": pg_hba.conf has no line for it, or it has no LOGIN.
        Some("28000") if error.to_string().contains("not permitted to log in") => {
            sql(format!("ALTER ROLE {role} LOGIN;"))
        }
        Some("42501") => sql(format!(
            "GRANT CONNECT ON DATABASE {} TO {role};",
            escape_identifier(&source.database)
        )),
        Some("3D000") => sql(format!(
            "CREATE DATABASE {};",
            escape_identifier(&source.database)
        )),
        Some("28P01") => advice(
            "set database.user and database.password; where the role does not exist yet, `outboxd setup` prints the SQL that makes it",
        ),
        _ => advice(match error.class() {
            ErrorClass::Retry | ErrorClass::Rewind => {
                "check database.hostname and database.port, and that the server runs; `run` keeps trying"
            }
            ErrorClass::Poison | ErrorClass::Fatal => {
                "check the settings that begin with database."
            }
        }),
    };
    let severity = match error.class() {
        ErrorClass::Retry | ErrorClass::Rewind => Severity::Wait,
        ErrorClass::Poison | ErrorClass::Fatal => Severity::Error,
    };
    Finding::bad(severity, what, mend)
}

/// An ordinary session is possible, and a replication connection is not.
pub fn of_replication_login(error: &SourceError, source: &SourceOptions) -> Finding {
    let what = format!("No replication connection is possible: {}", Chain(error));
    let mend = match error.sqlstate() {
        Some("42501") => sql(format!(
            "ALTER ROLE {} REPLICATION;",
            escape_identifier(&source.user)
        )),
        Some("53300") => advice(
            "raise max_wal_senders and restart the server, or end walsenders that are no longer used",
        ),
        _ => advice(
            "let database.hostname and database.port lead to the server itself and not to a pooler, and pg_hba.conf let the role in",
        ),
    };
    let severity = match error.class() {
        ErrorClass::Retry | ErrorClass::Rewind => Severity::Wait,
        ErrorClass::Poison | ErrorClass::Fatal => Severity::Error,
    };
    Finding::bad(severity, what, mend)
}
