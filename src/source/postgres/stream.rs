use std::time::{Duration, SystemTime};

use bytes::BytesMut;
use postgres_protocol::escape::escape_identifier;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use super::connection::{Complaint, Connection};
use super::frame::{Inbound, Received};
use super::login::{self, Purpose};
use super::server_list::Server;
use super::socket::{Duplex, write_all};
use super::walmsg::StatusUpdate;
use super::{SourceError, SourceOptions};
use crate::model::{ConfirmedLsn, Lsn, PublicationName, SlotName};

/// The running stream of a replication slot: we read the log from it and write positions to it.
///
/// What was read lies in an [`Inbound`] beside it, not in it, so that a message can stay
/// borrowed from there while positions are written here.
pub struct ReplicationStream {
    io: Box<dyn Duplex>,
    outbound: BytesMut,
    server: String,
    slot: SlotName,
    publication: PublicationName,
}

/// Which log a server writes (`IDENTIFY_SYSTEM`; PostgreSQL documentation, "Streaming
/// Replication Protocol").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemIdentity {
    /// Names the cluster; a restored copy keeps it.
    pub system_id: String,
    /// Changes when a standby is promoted or a backup restored.
    pub timeline: u32,
    /// The end of the log that is safe on the server's disk now.
    pub wal_end: Lsn,
}

/// What the server said besides the data of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEvent {
    /// Nothing more is received yet.
    NeedsMore,
    /// Something without meaning for us was passed over; look again.
    Passed,
    /// The server ended the stream.
    Ended,
}

const READING: &str = "reading the replication stream";

impl ReplicationStream {
    /// Opens a connection and starts the slot's stream at the position the server remembers
    /// (rule R4: `0/0` lets the server choose its confirmed position).
    ///
    /// `server` is the one that was prepared, see [`super::Database::server`].
    /// `wal_sender_timeout` replaces one of 0, with which a server would never notice that we
    /// are gone.
    ///
    /// # Errors
    /// When the connection fails or the server refuses, for instance because another process
    /// holds the slot (class retry).
    pub async fn start(
        options: &SourceOptions,
        server: &Server,
        wal_sender_timeout: Option<Duration>,
    ) -> Result<(Self, Inbound, SystemIdentity), SourceError> {
        let mut connection = login::open(options, server, Purpose::Replication).await?;
        let settings = session_settings(connection.major_version(), wal_sender_timeout);
        connection
            .execute("setting up the session", &settings)
            .await?;
        let system = identify(&mut connection).await?;
        let command = format!(
            "START_REPLICATION SLOT {} LOGICAL 0/0 (proto_version '1', publication_names {})",
            escape_identifier(options.slot.as_str()),
            literal(&escape_identifier(options.publication.as_str())),
        );
        let (io, inbound, server) = connection
            .into_copy("starting the replication stream", &command)
            .await?;
        let stream = Self {
            io,
            outbound: BytesMut::new(),
            server,
            slot: options.slot.clone(),
            publication: options.publication.clone(),
        };
        Ok((stream, inbound, system))
    }

    /// Reads once from the socket into `inbound`, waiting if need be. Cancel-safe: what was
    /// read is in `inbound`, or was not read.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn receive(&mut self, inbound: &mut Inbound) -> Result<(), SourceError> {
        inbound
            .fill(&mut *self.io)
            .await
            .map_err(|source| self.io_error(READING, source))
    }

    /// The body of the next message of the stream that is received whole, borrowed.
    ///
    /// # Errors
    /// When the bytes are no protocol message.
    pub fn data<'a>(&self, inbound: &'a Inbound) -> Result<Option<&'a [u8]>, SourceError> {
        inbound
            .copy_data()
            .map_err(|source| self.io_error(READING, source))
    }

    /// Handles what the server says besides data, once [`Self::data`] has none.
    ///
    /// # Errors
    /// When the server ended the stream with an error, or says that it leaves out what the
    /// publication does not know yet.
    pub fn event(&self, inbound: &mut Inbound) -> Result<StreamEvent, SourceError> {
        let received = inbound
            .take()
            .map_err(|source| self.io_error(READING, source))?;
        match received {
            None => Ok(StreamEvent::NeedsMore),
            Some(Received::Message(Message::ErrorResponse(body))) => {
                let complaint = Complaint::of(body.fields());
                Err(match is_of_publication(&complaint) {
                    true => self.publication_is_young(),
                    false => complaint.into_error(READING),
                })
            }
            Some(Received::Message(Message::NoticeResponse(body)))
                if is_of_publication(&Complaint::of(body.fields())) =>
            {
                Err(self.publication_is_young())
            }
            Some(Received::Message(Message::CopyDone)) => Ok(StreamEvent::Ended),
            Some(_) => Ok(StreamEvent::Passed),
        }
    }

    /// Reports a position, and asks the server for an answer if wanted.
    ///
    /// # Errors
    /// When the connection broke, or the server takes nothing for 20 s.
    pub async fn send(
        &mut self,
        confirmed: ConfirmedLsn,
        reply_requested: bool,
    ) -> Result<(), SourceError> {
        self.put_status(confirmed, reply_requested);
        self.flush().await
    }

    /// Reports a last position, ends the stream and the session, and returns when the server
    /// has answered, so that the position is known to have arrived. What the server still sends
    /// is thrown away: it comes again.
    ///
    /// # Errors
    /// When the connection broke. A server that is in the middle of a large transaction answers
    /// only after it: bound the wait.
    pub async fn finish(
        mut self,
        mut inbound: Inbound,
        last: ConfirmedLsn,
    ) -> Result<(), SourceError> {
        self.put_status(last, true);
        frontend::copy_done(&mut self.outbound);
        self.flush().await?;
        loop {
            while self.data(&inbound)?.is_some() {
                inbound
                    .consume_copy_data()
                    .map_err(|source| self.io_error(READING, source))?;
            }
            match self.event(&mut inbound)? {
                StreamEvent::NeedsMore => self.receive(&mut inbound).await?,
                StreamEvent::Passed => {}
                StreamEvent::Ended => break,
            }
        }
        frontend::terminate(&mut self.outbound);
        self.flush().await
    }

    fn put_status(&mut self, confirmed: ConfirmedLsn, reply_requested: bool) {
        let update = StatusUpdate {
            confirmed,
            send_time: SystemTime::now().into(),
            reply_requested,
        };
        update.encode(&mut self.outbound);
    }

    async fn flush(&mut self) -> Result<(), SourceError> {
        write_all(&mut self.io, &mut self.outbound)
            .await
            .map_err(|source| self.io_error("reporting a position", source))
    }

    fn publication_is_young(&self) -> SourceError {
        SourceError::PublicationIsYoung {
            slot: self.slot.clone(),
            publication: self.publication.clone(),
        }
    }

    fn io_error(&self, doing: &'static str, source: std::io::Error) -> SourceError {
        SourceError::Io {
            server: self.server.clone(),
            doing,
            source,
        }
    }
}

/// Whether the server does not find the publication at the place of the log that it decodes:
/// `LoadPublications` (pgoutput.c) fails up to PostgreSQL 17, with the SQLSTATE of an undefined
/// object; from 18 on it warns, and every row is left out.
fn is_of_publication(complaint: &Complaint) -> bool {
    complaint.code == "42704" || complaint.routine == "LoadPublications"
}

async fn identify(connection: &mut Connection) -> Result<SystemIdentity, SourceError> {
    const DOING: &str = "identifying the server";
    let row = connection.query_row(DOING, "IDENTIFY_SYSTEM").await?;
    let column = |index: usize| row.get(index).cloned().flatten().unwrap_or_default();
    let unreadable = || SourceError::Protocol {
        doing: DOING,
        what: "an answer that cannot be read".to_owned(),
    };
    Ok(SystemIdentity {
        system_id: column(0),
        timeline: column(1).parse().map_err(|_| unreadable())?,
        wal_end: column(2).parse().map_err(|_| unreadable())?,
    })
}

/// Settings that decide the text form of values, pinned because a role or a database can have
/// its own, and time limits that must not end a stream.
fn session_settings(major_version: u32, wal_sender_timeout: Option<Duration>) -> String {
    let mut settings = String::from(
        "SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres'; SET TimeZone = 'UTC'; \
         SET bytea_output = 'hex'; SET extra_float_digits = 1; SET lc_monetary = 'C'; \
         SET xmlbinary = 'base64'; SET client_min_messages = 'warning'; \
         SET statement_timeout = 0; SET lock_timeout = 0; \
         SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 0;",
    );
    if major_version >= 17 {
        settings.push_str(" SET transaction_timeout = 0;");
    }
    if let Some(timeout) = wal_sender_timeout {
        settings.push_str(&format!(
            " SET wal_sender_timeout = '{}ms';",
            timeout.as_millis()
        ));
    }
    settings
}

/// A string constant of the replication grammar, which has no backslash escapes (repl_scanner.l).
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publication_names_are_quoted_twice() {
        let name = literal(&escape_identifier(r#"it's "my" pub"#));
        assert_eq!(name, r#"'"it''s ""my"" pub"'"#);
    }

    #[test]
    fn newer_settings_are_left_to_newer_servers() {
        assert!(session_settings(17, None).contains("SET transaction_timeout = 0"));
        assert!(!session_settings(16, None).contains("SET transaction_timeout"));
        let limited = session_settings(18, Some(Duration::from_secs(60)));
        assert!(
            limited.contains("SET wal_sender_timeout = '60000ms'"),
            "{limited}"
        );
    }
}
