use std::sync::Arc;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use rustls::ClientConfig;
use secrecy::{ExposeSecret, SecretString};

use super::auth::{Scram, md5};
use super::connection::Connection;
use super::error::is_tls_refusal;
use super::frame::Inbound;
use super::server_list::Server;
use super::socket::{Encryption, Socket};
use super::{APPLICATION_NAME, SourceError, SourceOptions, SslMode, tls};

const LOGGING_IN: &str = "logging in";

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Ordinary SQL.
    Sql,
    /// `replication=database`: the commands of the streaming replication protocol.
    Replication,
}

impl SslMode {
    /// How to connect, and how else when that was refused (PostgreSQL documentation, libpq,
    /// "SSL Support": allow tries without TLS first, prefer with it).
    fn attempts(self) -> (Encryption, Option<Encryption>) {
        match self {
            Self::Disable => (Encryption::Never, None),
            Self::Allow => (Encryption::Never, Some(Encryption::Always)),
            Self::Prefer => (Encryption::IfOffered, Some(Encryption::Never)),
            Self::Require | Self::VerifyCa | Self::VerifyFull => (Encryption::Always, None),
        }
    }
}

/// Connects to this server, encrypts as `database.sslmode` says, and logs in, all within
/// `driver.connectTimeout`.
///
/// # Errors
/// When the server cannot be reached in time, cannot encrypt, refuses the login, or is in
/// recovery, where nothing can be written (class retry: it may be promoted).
pub(super) async fn open(
    options: &SourceOptions,
    server: &Server,
    purpose: Purpose,
) -> Result<Connection, SourceError> {
    // Read anew each time, so that renewed certificates are used.
    let config = tls::client_config(&options.tls)?;
    let connecting = async {
        let attempt = |encryption| attempt(options, server, purpose, encryption, &config);
        let (first, second) = options.tls.mode.attempts();
        match (attempt(first).await, second) {
            (Err(error), Some(second)) if may_hang_on_encryption(&error) => attempt(second).await,
            (outcome, _) => outcome,
        }
    };
    match tokio::time::timeout(options.connect_timeout, connecting).await {
        Ok(outcome) => outcome,
        Err(_) => Err(SourceError::Io {
            server: server.to_string(),
            doing: "connecting",
            source: std::io::ErrorKind::TimedOut.into(),
        }),
    }
}

/// Whether the other kind of connection could be welcome: TLS did not come about, or no line
/// of pg_hba.conf lets this kind in.
fn may_hang_on_encryption(error: &SourceError) -> bool {
    matches!(error, SourceError::Tls(_)) || error.sqlstate() == Some("28000")
}

async fn attempt(
    options: &SourceOptions,
    server: &Server,
    purpose: Purpose,
    encryption: Encryption,
    config: &Arc<ClientConfig>,
) -> Result<Connection, SourceError> {
    let socket = Socket::open(server, options.tcp_keepalive, encryption, config).await?;
    let mut login = Login {
        options,
        is_encrypted: socket.is_encrypted,
        binding: socket.binding,
        connection: Connection::new(socket.io, Inbound::default(), server.to_string()),
    };
    match login.run(purpose).await {
        // With TLS 1.3 the server looks at our certificate after our handshake has ended.
        Err(SourceError::Io { source, .. }) if is_tls_refusal(&source) => {
            Err(SourceError::tls_refused(server, &source))
        }
        Err(error) => Err(error),
        Ok(()) if login.connection.is_in_recovery() => Err(SourceError::NotYet(format!(
            "the server at {server} is in recovery, a standby that only reads; outboxd waits for a primary: name the primary in database.hostname, or all servers with commas between them"
        ))),
        Ok(()) => Ok(login.connection),
    }
}

/// A login under way (PostgreSQL documentation, "Message Flow", "Start-up").
struct Login<'o> {
    options: &'o SourceOptions,
    is_encrypted: bool,
    binding: Option<postgres_protocol::authentication::sasl::ChannelBinding>,
    connection: Connection,
}

impl Login<'_> {
    async fn run(&mut self, purpose: Purpose) -> Result<(), SourceError> {
        let mut parameters = vec![
            ("user", self.options.user.as_str()),
            ("database", self.options.database.as_str()),
            ("application_name", APPLICATION_NAME),
            ("client_encoding", "UTF8"),
        ];
        if purpose == Purpose::Replication {
            parameters.push(("replication", "database"));
        }
        self.say(|buffer| frontend::startup_message(parameters, buffer))
            .await?;
        self.authenticate().await?;
        self.connection.until_ready(LOGGING_IN).await
    }

    async fn authenticate(&mut self) -> Result<(), SourceError> {
        let mut scram: Option<Scram> = None;
        loop {
            match (self.connection.message(LOGGING_IN).await?, &mut scram) {
                (Message::AuthenticationOk, _) => return Ok(()),
                (Message::AuthenticationSasl(body), None) => {
                    let offered = body
                        .mechanisms()
                        .map(|name| Ok(name.to_owned()))
                        .collect::<Vec<_>>()
                        .map_err(|error| SourceError::Protocol {
                            doing: LOGGING_IN,
                            what: error.to_string(),
                        })?;
                    let exchange = Scram::begin(&offered, &self.password()?, self.binding.take())?;
                    self.say(|buffer| {
                        frontend::sasl_initial_response(
                            exchange.mechanism(),
                            exchange.message(),
                            buffer,
                        )
                    })
                    .await?;
                    scram = Some(exchange);
                }
                (Message::AuthenticationSaslContinue(body), Some(exchange)) => {
                    exchange.challenge(body.data())?;
                    self.say(|buffer| frontend::sasl_response(exchange.message(), buffer))
                        .await?;
                }
                (Message::AuthenticationSaslFinal(body), Some(exchange)) => {
                    exchange.finish(body.data())?;
                }
                (Message::AuthenticationMd5Password(body), None) => {
                    let answer = md5(&self.options.user, &self.password()?, body.salt());
                    self.send_password(answer.expose_secret()).await?;
                }
                (Message::AuthenticationCleartextPassword, None) if self.is_encrypted => {
                    let password = self.password()?;
                    self.send_password(password.expose_secret()).await?;
                }
                (Message::AuthenticationCleartextPassword, None) => {
                    return Err(SourceError::Login(
                        "the server asks for the password in the clear on a connection that is not encrypted, and it was not sent; set database.sslmode=require, or the method scram-sha-256 in the server's pg_hba.conf".to_owned(),
                    ));
                }
                (other, _) => return Err(unknown_method(&other)),
            }
        }
    }

    fn password(&self) -> Result<SecretString, SourceError> {
        let password = self.options.password.as_ref().ok_or_else(|| {
            SourceError::Login(format!(
                "the server asks role {} for a password; set database.password",
                self.options.user
            ))
        })?;
        password.read()
    }

    async fn send_password(&mut self, password: &str) -> Result<(), SourceError> {
        self.say(|buffer| frontend::password_message(password.as_bytes(), buffer))
            .await
    }

    async fn say(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>,
    ) -> Result<(), SourceError> {
        self.connection.put(LOGGING_IN, write)?;
        self.connection.flush(LOGGING_IN).await
    }
}

fn unknown_method(request: &Message) -> SourceError {
    let method = match request {
        Message::AuthenticationGss | Message::AuthenticationKerberosV5 => "GSSAPI (Kerberos)",
        Message::AuthenticationSspi => "SSPI",
        _ => "another method than SCRAM-SHA-256, md5, password and cert",
    };
    SourceError::Login(format!(
        "the server asks for a login by {method}, which outboxd cannot do; give the role a line with scram-sha-256 or cert in the server's pg_hba.conf"
    ))
}
