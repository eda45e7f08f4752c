use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use smallvec::SmallVec;

use super::{Converter, Kind, Schema, json};
use crate::model::{ErrorClass, Value};

/// Bytes of a `bytea` that are turned to base64 at a time: a multiple of 3, so that only the
/// last group is padded.
const BASE64_GROUP: usize = 96;

/// A converter bound to one column.
#[derive(Debug, Clone)]
pub struct Encoder {
    form: Form,
}

/// How a value of the column becomes bytes.
#[derive(Debug, Clone)]
enum Form {
    /// The text as it is.
    Text,
    /// `true` or `false`.
    Boolean,
    /// The bytes of a `bytea`.
    Bytes,
    /// A `bytea` in base64.
    Base64,
    /// A JSON value, between what stands before and behind it.
    Json {
        start: Box<[u8]>,
        kind: Kind,
        end: &'static [u8],
        optional: bool,
    },
}

/// Encoded bytes, where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A null, which is not the same as no bytes.
    Null,
    /// Bytes that stand elsewhere, most often in the receive buffer.
    Borrowed(&'a [u8]),
    /// Bytes written to the arena that was given to [`Encoder::encode`].
    Arena(Range<usize>),
}

/// A value or a column that cannot be converted. Never shows the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// StringConverter on a `bytea` column: Debezium writes the name of a Java object.
    #[error(
        "StringConverter makes no sense of bytea; store text, or use a converter for bytes (JsonConverter writes base64)"
    )]
    BytesAsString,
    /// The value was not sent. Inserts have all their values.
    #[error("the value is not in the replication stream, which never happens for inserted rows")]
    Unchanged,
    /// NULL in a column that was declared NOT NULL after the row was written.
    #[error(
        "the value is NULL but the column is NOT NULL by now, which JsonConverter cannot express; drop NOT NULL until the row is sent"
    )]
    NullInRequired,
    /// Text that is not UTF-8, as a database with encoding SQL_ASCII can hold.
    #[error("the text is not UTF-8, so it cannot be written as JSON")]
    NotUtf8,
    /// A `boolean` that is neither `t` nor `f`.
    #[error("the value is not a boolean in PostgreSQL's text form")]
    NotBoolean,
    /// A `bytea` not in hexadecimal form.
    #[error(
        "the value is not bytea in hexadecimal form; bytea_output must be 'hex' on the replication connection"
    )]
    NotHex,
}

impl Encoder {
    pub(super) fn new(converter: Converter, schema: &Schema) -> Result<Self, ConvertError> {
        let form = match (converter, schema.kind) {
            (Converter::Json { schemas }, kind) => Form::Json {
                start: if schemas {
                    json::envelope_start(schema)
                } else {
                    String::new()
                }
                .into_bytes()
                .into(),
                kind,
                end: if schemas { json::ENVELOPE_END } else { b"" },
                optional: schema.optional,
            },
            (Converter::Plain, Kind::Bytes) => Form::Bytes,
            (Converter::SimpleHeader, Kind::Bytes) => Form::Base64,
            (Converter::String, Kind::Bytes) => return Err(ConvertError::BytesAsString),
            (_, Kind::Boolean) => Form::Boolean,
            (_, Kind::String | Kind::Int16 | Kind::Int32 | Kind::Int64) => Form::Text,
        };
        Ok(Self { form })
    }

    /// The bytes for `value`. What has to be written is appended to `arena`, which the caller
    /// clears between events; text that stays as it is is only pointed to.
    ///
    /// NULL is a null for all converters but JsonConverter, which writes `null`.
    ///
    /// # Errors
    /// When the value is not in the text form of the column's type, or cannot be expressed.
    pub fn encode<'a>(
        &self,
        value: Value<'a>,
        arena: &mut Vec<u8>,
    ) -> Result<Piece<'a>, ConvertError> {
        let text = match value {
            Value::Text(text) => Some(text),
            Value::Null => None,
            Value::Unchanged => return Err(ConvertError::Unchanged),
        };
        let begin = arena.len();
        match (&self.form, text) {
            (
                Form::Json {
                    start,
                    kind,
                    end,
                    optional,
                },
                text,
            ) => {
                arena.extend_from_slice(start);
                match text {
                    Some(text) => push_json(arena, *kind, text)?,
                    None if *optional => arena.extend_from_slice(b"null"),
                    None => return Err(ConvertError::NullInRequired),
                }
                arena.extend_from_slice(end);
            }
            (_, None) => return Ok(Piece::Null),
            (Form::Text, Some(text)) => return Ok(Piece::Borrowed(text)),
            (Form::Boolean, Some(text)) => return boolean(text).map(Piece::Borrowed),
            (Form::Bytes, Some(text)) => push_bytes(arena, text)?,
            (Form::Base64, Some(text)) => push_base64(arena, text)?,
        }
        Ok(Piece::Arena(begin..arena.len()))
    }
}

impl<'a> Piece<'a> {
    /// The bytes, or `None` for a null. `arena` is the one the piece was encoded into.
    ///
    /// # Panics
    /// With an arena that the piece's bytes are not in.
    #[expect(
        clippy::indexing_slicing,
        reason = "the range was made from this arena; a wrong one must not pass for a null"
    )]
    pub fn bytes(&self, arena: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Self::Null => None,
            Self::Borrowed(bytes) => Some(bytes),
            Self::Arena(range) => Some(&arena[range.clone()]),
        }
    }
}

fn push_json(arena: &mut Vec<u8>, kind: Kind, text: &[u8]) -> Result<(), ConvertError> {
    match kind {
        Kind::String => {
            let text = std::str::from_utf8(text).map_err(|_| ConvertError::NotUtf8)?;
            json::push_string(arena, text);
        }
        Kind::Int16 | Kind::Int32 | Kind::Int64 => arena.extend_from_slice(text),
        Kind::Boolean => arena.extend_from_slice(boolean(text)?),
        Kind::Bytes => {
            arena.push(b'"');
            push_base64(arena, text)?;
            arena.push(b'"');
        }
    }
    Ok(())
}

/// Java's word for a boolean in PostgreSQL's text form.
fn boolean(text: &[u8]) -> Result<&'static [u8], ConvertError> {
    match text {
        b"t" => Ok(b"true"),
        b"f" => Ok(b"false"),
        _ => Err(ConvertError::NotBoolean),
    }
}

fn push_bytes(arena: &mut Vec<u8>, text: &[u8]) -> Result<(), ConvertError> {
    let pairs = hex_pairs(text)?;
    arena.reserve(pairs.len());
    for pair in pairs {
        arena.push(byte(*pair)?);
    }
    Ok(())
}

fn push_base64(arena: &mut Vec<u8>, text: &[u8]) -> Result<(), ConvertError> {
    for group in hex_pairs(text)?.chunks(BASE64_GROUP) {
        let bytes: SmallVec<[u8; BASE64_GROUP]> = group
            .iter()
            .map(|pair| byte(*pair))
            .collect::<Result<_, _>>()?;
        let begin = arena.len();
        arena.resize(begin + bytes.len().div_ceil(3) * 4, 0);
        let (_, room) = arena.split_at_mut(begin);
        BASE64
            .encode_slice(&bytes, room)
            .expect("3 bytes, or what is left, take 4 characters");
    }
    Ok(())
}

/// The digit pairs of a `bytea` in hexadecimal form, `\x00ff` (PostgreSQL documentation,
/// "bytea Hex Format").
fn hex_pairs(text: &[u8]) -> Result<&[[u8; 2]], ConvertError> {
    let digits = text.strip_prefix(br"\x").ok_or(ConvertError::NotHex)?;
    match digits.as_chunks::<2>() {
        (pairs, []) => Ok(pairs),
        _ => Err(ConvertError::NotHex),
    }
}

fn byte([high, low]: [u8; 2]) -> Result<u8, ConvertError> {
    let nibble = |digit: u8| match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(ConvertError::NotHex),
    };
    Ok(nibble(high)? << 4 | nibble(low)?)
}

impl ConvertError {
    /// What the relay does about it (rule R9).
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::BytesAsString | Self::NotHex | Self::Unchanged => ErrorClass::Fatal,
            Self::NullInRequired | Self::NotUtf8 | Self::NotBoolean => ErrorClass::Poison,
        }
    }
}

#[cfg(test)]
mod tests;
