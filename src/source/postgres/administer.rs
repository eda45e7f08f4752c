use std::str::FromStr;

use postgres_protocol::escape::escape_literal;
use postgres_protocol::password::scram_sha_256;
use secrecy::{ExposeSecret, SecretString};
use tokio_postgres::config::Host;

use super::{Database, Password, ServerList, SourceError, SourceOptions};

impl SourceOptions {
    /// The same database, entered as somebody else: `postgres://user:password@host:port`, of
    /// which only the user has to be given. `password` is for a URL without one. TLS stays as
    /// it is configured.
    ///
    /// # Errors
    /// When it is no such URL, or names another database.
    pub fn entered_as(
        &self,
        url: &str,
        password: Option<SecretString>,
    ) -> Result<Self, SourceError> {
        // The client's own words could repeat a part of the URL, and it holds a password.
        let config = tokio_postgres::Config::from_str(url).ok();
        let Some((config, user)) = config
            .as_ref()
            .and_then(|config| Some((config, config.get_user()?)))
        else {
            return Err(SourceError::Unusable(
                "--as needs a URL such as postgres://user:password@host:5432".to_owned(),
            ));
        };
        if let Some(other) = config.get_dbname().filter(|name| *name != self.database) {
            return Err(SourceError::Unusable(format!(
                "--as names database {other}, and the connector reads {}; leave it out",
                self.database
            )));
        }
        let mut options = self.clone();
        options.user = user.to_owned();
        options.password = config
            .get_password()
            .map(|password| SecretString::from(String::from_utf8_lossy(password).into_owned()))
            .or(password)
            .map(Password::fixed);
        if let Some(Host::Tcp(host)) = config.get_hosts().first() {
            let port = config.get_ports().first().copied().unwrap_or(5432);
            options.servers = ServerList::new(host, &port.to_string())
                .map_err(|error| SourceError::Unusable(format!("--as: {error}")))?;
        }
        Ok(options)
    }
}

/// A password as the server keeps it, as an SQL literal: then it stands nowhere in the clear,
/// also not in the server's log of statements (PostgreSQL documentation, "CREATE ROLE").
pub fn password_verifier(password: &SecretString) -> String {
    escape_literal(&scram_sha_256(password.expose_secret().as_bytes()))
}

impl Database {
    /// Runs a statement that changes the database.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn change(&self, statement: &str) -> Result<(), SourceError> {
        self.execute("setting up", statement).await
    }
}
