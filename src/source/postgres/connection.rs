use std::ops::Range;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{ErrorFields, Message};
use postgres_protocol::message::frontend;

use super::SourceError;
use super::frame::{Inbound, Received};
use super::socket::{Duplex, write_all};

/// Messages to and from a server, in both directions (PostgreSQL documentation,
/// "Frontend/Backend Protocol"). [`super::login::open`] gives one that is logged in.
pub(super) struct Connection {
    io: Box<dyn Duplex>,
    inbound: Inbound,
    outbound: BytesMut,
    /// Where the server is, for messages.
    server: String,
    /// `server_version` as reported at login, such as `17.11`.
    server_version: String,
    /// `in_hot_standby` as reported at login (PostgreSQL 14 and later).
    in_recovery: bool,
}

impl Connection {
    pub(super) fn new(io: Box<dyn Duplex>, inbound: Inbound, server: String) -> Self {
        Self {
            io,
            inbound,
            outbound: BytesMut::new(),
            server,
            server_version: String::new(),
            in_recovery: false,
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

    /// Whether the server is a standby, on which nothing can be written.
    pub(super) fn is_in_recovery(&self) -> bool {
        self.in_recovery
    }

    /// Gives up the stream and what was received on it and not handled.
    pub(super) fn into_parts(self) -> (Box<dyn Duplex>, Inbound) {
        (self.io, self.inbound)
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
        let broken = |what: String| SourceError::Protocol { doing, what };
        let mut row = None;
        loop {
            match self.message(doing).await? {
                Message::DataRow(body) => {
                    let text = |range: Option<Range<usize>>| {
                        let bytes = range.and_then(|range| body.buffer().get(range));
                        Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
                    };
                    let columns = body.ranges().map(text).collect();
                    row = Some(columns.map_err(|error| broken(error.to_string()))?);
                }
                Message::ReadyForQuery(_) => {
                    return row.ok_or_else(|| broken("no row".to_owned()));
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
                Received::Message(message) => unless_error(doing, &message)?,
            }
        }
    }

    /// Reads until the server waits for a command.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub(super) async fn until_ready(&mut self, doing: &'static str) -> Result<(), SourceError> {
        loop {
            match self.message(doing).await? {
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ParameterStatus(body) => match (body.name(), body.value()) {
                    (Ok("server_version"), Ok(version)) => {
                        version.clone_into(&mut self.server_version)
                    }
                    (Ok("in_hot_standby"), Ok(value)) => self.in_recovery = value == "on",
                    _ => {}
                },
                _ => {}
            }
        }
    }

    /// Reads one message.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub(super) async fn message(&mut self, doing: &'static str) -> Result<Message, SourceError> {
        match self.received(doing).await? {
            Received::Message(message) => {
                unless_error(doing, &message)?;
                Ok(message)
            }
            Received::CopyBoth => Err(SourceError::Protocol {
                doing,
                what: "CopyBothResponse".to_owned(),
            }),
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

    /// Puts a message into the buffer that [`Self::flush`] sends.
    ///
    /// # Errors
    /// When it cannot be written as a message.
    pub(super) fn put(
        &mut self,
        doing: &'static str,
        write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>,
    ) -> Result<(), SourceError> {
        write(&mut self.outbound).map_err(|error| SourceError::Protocol {
            doing,
            what: error.to_string(),
        })
    }

    /// Sends what was put.
    ///
    /// # Errors
    /// When the connection broke.
    pub(super) async fn flush(&mut self, doing: &'static str) -> Result<(), SourceError> {
        write_all(&mut self.io, &mut self.outbound)
            .await
            .map_err(|source| SourceError::Io {
                server: self.server.clone(),
                doing,
                source,
            })
    }
}

fn unless_error(doing: &'static str, message: &Message) -> Result<(), SourceError> {
    match message {
        Message::ErrorResponse(body) => Err(server_error(doing, body.fields())),
        _ => Ok(()),
    }
}

/// Turns an ErrorResponse into our error.
pub(super) fn server_error(doing: &'static str, fields: ErrorFields<'_>) -> SourceError {
    Complaint::of(fields).into_error(doing)
}

/// An error or a notice of the server (PostgreSQL documentation, "Error and Notice Message
/// Fields").
#[derive(Debug, Default)]
pub(super) struct Complaint {
    /// SQLSTATE.
    pub(super) code: String,
    /// The function of the server's source that says it; never translated.
    pub(super) routine: String,
    message: String,
    hint: Option<String>,
}

impl Complaint {
    pub(super) fn of(mut fields: ErrorFields<'_>) -> Self {
        let mut complaint = Self::default();
        while let Ok(Some(field)) = fields.next() {
            let text = String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'C' => complaint.code = text,
                b'R' => complaint.routine = text,
                b'M' => complaint.message = text,
                b'H' => complaint.hint = Some(text),
                _ => {}
            }
        }
        complaint
    }

    pub(super) fn into_error(self, doing: &'static str) -> SourceError {
        SourceError::from_server(doing, &self.code, &self.message, self.hint.as_deref())
    }
}
