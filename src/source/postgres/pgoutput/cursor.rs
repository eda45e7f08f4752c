//! Reads one message of the replication stream field by field, in the network's byte order
//! (PostgreSQL documentation, "Message Data Types"). Every length is checked against the
//! bytes that are there; nothing panics.

use super::message::Timestamp;
use crate::model::Lsn;

/// A message of the replication stream is not what was asked for or documented. Nothing after
/// it can be trusted, so the stream has to stop; the position stays where it is.
///
/// Offsets count bytes from the kind byte. No content of a message is ever shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There was not even a kind byte.
    #[error("the server sent an empty replication message")]
    Empty,
    /// The kind byte is none that PostgreSQL documents.
    #[error(
        "the server sent a replication message of unknown kind '{}'; report this with the server's version",
        .kind.escape_ascii()
    )]
    UnknownKind {
        /// The kind byte.
        kind: u8,
    },
    /// A kind that the server may send only after a higher version was asked for.
    #[error(
        "the server sent a replication message '{}' ({name}), which needs proto_version {version}, but 1 was asked for",
        .kind.escape_ascii()
    )]
    NeedsProtocol {
        /// The kind byte.
        kind: u8,
        /// The message's name in PostgreSQL's documentation.
        name: &'static str,
        /// The lowest version that has it.
        version: u8,
    },
    /// A column's value came in binary form although text was asked for.
    #[error(
        "a value in a replication message '{}' came in binary form (byte {offset}); the option 'binary' must be off",
        .kind.escape_ascii()
    )]
    BinaryValue {
        /// The kind byte.
        kind: u8,
        /// Where the value's tag stands.
        offset: usize,
    },
    /// The bytes do not have the shape of their kind.
    #[error(
        "a replication message '{}' has no {expected} at byte {offset}; report this with the server's version",
        .kind.escape_ascii()
    )]
    Malformed {
        /// The kind byte.
        kind: u8,
        /// What should have stood there.
        expected: &'static str,
        /// Where.
        offset: usize,
    },
}

/// What is left of one message.
pub(crate) struct Cursor<'a> {
    kind: u8,
    length: usize,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Reads the kind byte with which every message begins.
    pub(crate) fn new(message: &'a [u8]) -> Result<(u8, Self), DecodeError> {
        let (&kind, rest) = message.split_first().ok_or(DecodeError::Empty)?;
        let length = message.len();
        Ok((kind, Self { kind, length, rest }))
    }

    pub(crate) fn lsn(&mut self) -> Result<Lsn, DecodeError> {
        Ok(Lsn::new(u64::from_be_bytes(self.array("LSN")?)))
    }

    pub(crate) fn timestamp(&mut self) -> Result<Timestamp, DecodeError> {
        Ok(Timestamp(i64::from_be_bytes(self.array("time")?)))
    }

    /// Text up to a NUL byte, which is consumed too.
    pub(crate) fn string(&mut self, expected: &'static str) -> Result<&'a str, DecodeError> {
        let rest = self.rest;
        let end = rest.iter().position(|byte| *byte == 0);
        let (text, rest) = end
            .and_then(|end| Some((rest.get(..end)?, rest.get(end + 1..)?)))
            .ok_or(self.malformed(expected))?;
        let text = str::from_utf8(text).map_err(|_| self.malformed(expected))?;
        self.rest = rest;
        Ok(text)
    }

    /// A length in 4 bytes, and that many bytes.
    pub(crate) fn counted_bytes(
        &mut self,
        expected: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        let length = self.u32(expected)?;
        let (bytes, rest) = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length))
            .ok_or(self.malformed(expected))?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(crate) fn u8(&mut self, expected: &'static str) -> Result<u8, DecodeError> {
        self.array(expected).map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self, expected: &'static str) -> Result<u16, DecodeError> {
        self.array(expected).map(u16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self, expected: &'static str) -> Result<i32, DecodeError> {
        self.array(expected).map(i32::from_be_bytes)
    }

    pub(crate) fn u32(&mut self, expected: &'static str) -> Result<u32, DecodeError> {
        self.array(expected).map(u32::from_be_bytes)
    }

    /// One byte that can only be this one.
    pub(crate) fn byte(&mut self, byte: u8, expected: &'static str) -> Result<(), DecodeError> {
        if self.u8(expected)? == byte {
            Ok(())
        } else {
            Err(self.unexpected(expected))
        }
    }

    fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], DecodeError> {
        let (bytes, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(self.malformed(expected))?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// All that has not been read.
    pub(crate) fn remainder(self) -> &'a [u8] {
        self.rest
    }

    /// Checks that nothing has been left unread.
    pub(crate) fn end(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.malformed("end of the message"))
        }
    }

    fn offset(&self) -> usize {
        self.length - self.rest.len()
    }

    /// What comes next is not what was expected.
    fn malformed(&self, expected: &'static str) -> DecodeError {
        DecodeError::Malformed {
            kind: self.kind,
            expected,
            offset: self.offset(),
        }
    }

    /// The byte just read says that a value comes in binary form.
    pub(crate) fn binary_value(&self) -> DecodeError {
        DecodeError::BinaryValue {
            kind: self.kind,
            offset: self.offset() - 1,
        }
    }

    /// The byte just read is not what was expected.
    pub(crate) fn unexpected(&self, expected: &'static str) -> DecodeError {
        DecodeError::Malformed {
            kind: self.kind,
            expected,
            offset: self.offset() - 1,
        }
    }
}
