use std::ops::Range;
use std::time::Duration;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::sasl::ChannelBinding;
use postgres_protocol::message::backend::{ErrorFields, Message};
use postgres_protocol::message::frontend;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::auth::Scram;
use super::error::is_tls_refusal;
use super::frame::{Inbound, Received};
use super::{SourceError, SourceOptions, SslMode, tls};

/// How long connecting and logging in may take together.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(20);
/// A server that does not take our few bytes for this long is gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

/// A byte stream in both directions, encrypted or not.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// A logged-in connection in replication mode, on which commands can be given
/// (PostgreSQL documentation, "Streaming Replication Protocol").
pub(super) struct Connection {
    io: Box<dyn Duplex>,
    inbound: Inbound,
    outbound: BytesMut,
    /// Where the server is, for messages.
    server: String,
    /// `server_version` as reported at login, such as `17.11`.
    server_version: String,
}

impl Connection {
    /// Connects, encrypts as `database.sslmode` says, and logs in with `replication=database`.
    ///
    /// # Errors
    /// When the server cannot be reached in time, cannot encrypt, or refuses the login.
    pub(super) async fn open(options: &SourceOptions) -> Result<Self, SourceError> {
        let server = format!("{}:{}", options.host, options.port);
        match tokio::time::timeout(LOGIN_TIMEOUT, Self::log_in(options, &server)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(SourceError::Io {
                server,
                doing: "connecting",
                source: std::io::ErrorKind::TimedOut.into(),
            }),
        }
    }

    async fn log_in(options: &SourceOptions, server: &str) -> Result<Self, SourceError> {
        let io_error = |source| SourceError::Io {
            server: server.to_owned(),
            doing: "connecting",
            source,
        };
        let socket = TcpStream::connect((options.host.as_str(), options.port))
            .await
            .map_err(io_error)?;
        // Positions are few bytes and should leave at once.
        socket.set_nodelay(true).map_err(io_error)?;
        let (io, binding) = encrypt(socket, options, server).await?;
        let mut connection = Self {
            io,
            inbound: Inbound::default(),
            outbound: BytesMut::new(),
            server: server.to_owned(),
            server_version: String::new(),
        };
        let parameters = [
            ("user", options.user.as_str()),
            ("database", options.database.as_str()),
            ("replication", "database"),
            ("application_name", "outboxd"),
            ("client_encoding", "UTF8"),
        ];
        frontend::startup_message(parameters, &mut connection.outbound).map_err(io_error)?;
        connection.flush("logging in").await?;
        connection.authenticate(options, binding).await?;
        connection.until_ready("logging in").await?;
        Ok(connection)
    }

    async fn authenticate(
        &mut self,
        options: &SourceOptions,
        mut binding: Option<ChannelBinding>,
    ) -> Result<(), SourceError> {
        const DOING: &str = "logging in";
        let mut scram: Option<Scram> = None;
        loop {
            match (self.message(DOING).await?, &mut scram) {
                (Message::AuthenticationOk, _) => return Ok(()),
                (Message::AuthenticationSasl(body), None) => {
                    let offered = body
                        .mechanisms()
                        .map(|name| Ok(name.to_owned()))
                        .collect::<Vec<_>>()
                        .map_err(|error| self.broken_protocol(DOING, error.to_string()))?;
                    let password = options.password.as_ref().ok_or_else(|| {
                        SourceError::Login(format!(
                            "the server asks role {} for a password; set database.password",
                            options.user
                        ))
                    })?;
                    let exchange = Scram::begin(&offered, password, binding.take())?;
                    self.put(DOING, |buffer| {
                        frontend::sasl_initial_response(
                            exchange.mechanism(),
                            exchange.message(),
                            buffer,
                        )
                    })?;
                    scram = Some(exchange);
                }
                (Message::AuthenticationSaslContinue(body), Some(exchange)) => {
                    exchange.challenge(body.data())?;
                    frontend::sasl_response(exchange.message(), &mut self.outbound)
                        .map_err(|error| SourceError::Login(error.to_string()))?;
                }
                (Message::AuthenticationSaslFinal(body), Some(exchange)) => {
                    exchange.finish(body.data())?
                }
                (
                    Message::AuthenticationCleartextPassword
                    | Message::AuthenticationMd5Password(_),
                    _,
                ) => {
                    return Err(SourceError::Login(
                        "the server asks for the password in the clear or as MD5, which outboxd does not do yet; set the method scram-sha-256 in the server's pg_hba.conf and the role's password again".to_owned(),
                    ));
                }
                _ => {
                    return Err(SourceError::Login(
                        "the server asks for a login method other than SCRAM-SHA-256; change the method in its pg_hba.conf".to_owned(),
                    ));
                }
            }
            self.flush(DOING).await?;
        }
    }

    /// The server's major version, 0 if it gave none we can read.
    pub(super) fn major_version(&self) -> u32 {
        let digits = self
            .server_version
            .split(|c: char| !c.is_ascii_digit())
            .next();
        digits.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Runs commands that return no rows.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub(super) async fn execute(
        &mut self,
        doing: &'static str,
        sql: &str,
    ) -> Result<(), SourceError> {
        self.put(doing, |buffer| frontend::query(sql, buffer))?;
        self.flush(doing).await?;
        self.until_ready(doing).await
    }

    /// Runs a command that returns one row, and gives its columns as text.
    ///
    /// # Errors
    /// The server's refusal, a broken connection, or no row.
    pub(super) async fn query_row(
        &mut self,
        doing: &'static str,
        command: &str,
    ) -> Result<Vec<Option<String>>, SourceError> {
        self.put(doing, |buffer| frontend::query(command, buffer))?;
        self.flush(doing).await?;
        let mut row = None;
        loop {
            match self.message(doing).await? {
                Message::DataRow(body) => {
                    let text = |range: Option<Range<usize>>| {
                        let bytes = range.and_then(|range| body.buffer().get(range));
                        Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
                    };
                    let columns = body.ranges().map(text).collect();
                    row = Some(
                        columns.map_err(|error| self.broken_protocol(doing, error.to_string()))?,
                    );
                }
                Message::ReadyForQuery(_) => {
                    return row.ok_or_else(|| self.broken_protocol(doing, "no row".to_owned()));
                }
                _ => {}
            }
        }
    }

    /// Gives the command that begins the stream, and hands over what the stream is made of.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub(super) async fn into_copy(
        mut self,
        doing: &'static str,
        command: &str,
    ) -> Result<(Box<dyn Duplex>, Inbound, String), SourceError> {
        self.put(doing, |buffer| frontend::query(command, buffer))?;
        self.flush(doing).await?;
        loop {
            match self.received(doing).await? {
                Received::CopyBoth => return Ok((self.io, self.inbound, self.server)),
                Received::Message(message) => self.unless_error(doing, &message)?,
            }
        }
    }

    async fn until_ready(&mut self, doing: &'static str) -> Result<(), SourceError> {
        loop {
            match self.message(doing).await? {
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ParameterStatus(body)
                    if body.name().is_ok_and(|name| name == "server_version") =>
                {
                    self.server_version = body.value().unwrap_or_default().to_owned();
                }
                _ => {}
            }
        }
    }

    async fn message(&mut self, doing: &'static str) -> Result<Message, SourceError> {
        match self.received(doing).await? {
            Received::Message(message) => {
                self.unless_error(doing, &message)?;
                Ok(message)
            }
            Received::CopyBoth => Err(self.broken_protocol(doing, "CopyBothResponse".to_owned())),
        }
    }

    fn unless_error(&self, doing: &'static str, message: &Message) -> Result<(), SourceError> {
        match message {
            Message::ErrorResponse(body) => Err(server_error(doing, body.fields())),
            _ => Ok(()),
        }
    }

    async fn received(&mut self, doing: &'static str) -> Result<Received, SourceError> {
        let io_error = |source| SourceError::Io {
            server: self.server.clone(),
            doing,
            source,
        };
        loop {
            if let Some(received) = self.inbound.take().map_err(io_error)? {
                return Ok(received);
            }
            self.inbound.fill(&mut *self.io).await.map_err(io_error)?;
        }
    }

    fn put(
        &mut self,
        doing: &'static str,
        write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>,
    ) -> Result<(), SourceError> {
        write(&mut self.outbound).map_err(|error| self.broken_protocol(doing, error.to_string()))
    }

    async fn flush(&mut self, doing: &'static str) -> Result<(), SourceError> {
        write_all(&mut self.io, &mut self.outbound)
            .await
            .map_err(|source| SourceError::Io {
                server: self.server.clone(),
                doing,
                source,
            })
    }

    fn broken_protocol(&self, doing: &'static str, what: String) -> SourceError {
        SourceError::Protocol { doing, what }
    }
}

/// Writes all that waits in `outbound`.
///
/// # Errors
/// The socket's own, or `TimedOut` when the server takes nothing for 20 s.
pub(super) async fn write_all(
    io: &mut (impl AsyncWrite + Unpin),
    outbound: &mut BytesMut,
) -> std::io::Result<()> {
    let writing = async {
        io.write_all_buf(outbound).await?;
        io.flush().await
    };
    match tokio::time::timeout(WRITE_TIMEOUT, writing).await {
        Ok(outcome) => outcome,
        Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
    }
}

/// Turns an ErrorResponse into our error.
pub(super) fn server_error(doing: &'static str, mut fields: ErrorFields<'_>) -> SourceError {
    let (mut code, mut message, mut hint) = (String::new(), String::new(), None);
    while let Ok(Some(field)) = fields.next() {
        let text = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => code = text,
            b'M' => message = text,
            b'H' => hint = Some(text),
            _ => {}
        }
    }
    SourceError::from_server(doing, &code, &message, hint.as_deref())
}

/// Encrypts the connection as the settings ask, before anything else is said
/// (PostgreSQL documentation, "SSL Session Encryption").
async fn encrypt(
    mut socket: TcpStream,
    options: &SourceOptions,
    server: &str,
) -> Result<(Box<dyn Duplex>, Option<ChannelBinding>), SourceError> {
    if options.tls.mode == SslMode::Disable {
        return Ok((Box::new(socket), None));
    }
    let io_error = |source| SourceError::Io {
        server: server.to_owned(),
        doing: "asking for TLS",
        source,
    };
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    write_all(&mut socket, &mut request)
        .await
        .map_err(io_error)?;
    match socket.read_u8().await.map_err(io_error)? {
        b'S' => {}
        b'N' if options.tls.mode == SslMode::Prefer => return Ok((Box::new(socket), None)),
        _ => {
            return Err(SourceError::Tls(format!(
                "database.sslmode asks for TLS, but the server at {server} has none; set ssl=on there, or database.sslmode=disable here if the network is trusted"
            )));
        }
    }
    let name = ServerName::try_from(options.host.clone()).map_err(|_| {
        SourceError::Tls(format!(
            "database.hostname '{}' is no host name that a certificate could be for",
            options.host
        ))
    })?;
    let connector = tokio_rustls::TlsConnector::from(tls::client_config(&options.tls)?);
    let stream = connector.connect(name, socket).await.map_err(|error| {
        if is_tls_refusal(&error) {
            SourceError::tls_refused(server, &error.to_string())
        } else {
            io_error(error)
        }
    })?;
    let binding = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(|chain| chain.first())
        .and_then(tls::channel_binding);
    Ok((Box::new(stream), binding))
}
