//! The messages inside the CopyData frames of a running stream (PostgreSQL documentation,
//! "Streaming Replication Protocol", START_REPLICATION). Pure: bytes in, bytes out.

use bytes::{BufMut, BytesMut};

use super::pgoutput::cursor::Cursor;
use super::pgoutput::{DecodeError, Timestamp};
use crate::model::{ConfirmedLsn, Lsn};

/// What the server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalMessage<'a> {
    /// One message of the output plugin.
    XLogData(XLogData<'a>),
    /// A sign of life, with a position.
    Keepalive(Keepalive),
}

/// One message of the output plugin.
///
/// The header's WAL end is left out on purpose: it does not say that everything before it was
/// sent, so it must never become a position (rule R1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct XLogData<'a> {
    /// Where the change stands in the log, to name it in an error. Not a position to confirm:
    /// it neither grows along the stream nor names one message.
    pub start: Lsn,
    /// When the server sent it, by its clock.
    pub send_time: Timestamp,
    /// The plugin's message, for [`decode`](super::pgoutput::decode).
    pub data: &'a [u8],
}

/// The server's sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Everything before this was read by the server, and what concerns us was sent. May be
    /// confirmed when nothing is in flight (rule R2).
    pub wal_end: Lsn,
    /// When the server sent it, by its clock.
    pub send_time: Timestamp,
    /// Whether the server wants a status update at once, or else will end the connection.
    pub reply_requested: bool,
}

/// What we report: Standby status update.
///
/// There is one position: written, flushed and applied are the same for us, namely what the
/// broker has acknowledged (rule R1). [`ConfirmedLsn::NONE`] leaves the slot where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusUpdate {
    /// Everything before this may be forgotten by the server.
    pub confirmed: ConfirmedLsn,
    /// The time now, by our clock.
    pub send_time: Timestamp,
    /// Whether the server shall answer with a keepalive at once.
    pub reply_requested: bool,
}

/// Parses the content of one CopyData frame.
///
/// # Errors
/// When it is neither an XLogData nor a keepalive of the documented length.
pub fn parse(content: &[u8]) -> Result<WalMessage<'_>, DecodeError> {
    let (kind, mut cursor) = Cursor::new(content)?;
    match kind {
        b'w' => {
            let start = cursor.lsn()?;
            cursor.lsn()?; // WAL end, see XLogData
            let send_time = cursor.timestamp()?;
            Ok(WalMessage::XLogData(XLogData {
                start,
                send_time,
                data: cursor.remainder(),
            }))
        }
        b'k' => {
            let keepalive = Keepalive {
                wal_end: cursor.lsn()?,
                send_time: cursor.timestamp()?,
                reply_requested: cursor.u8("reply request")? != 0,
            };
            cursor.end()?;
            Ok(WalMessage::Keepalive(keepalive))
        }
        _ => Err(DecodeError::UnknownKind { kind }),
    }
}

impl StatusUpdate {
    /// Appends the update as a whole CopyData frame.
    pub fn encode(&self, out: &mut BytesMut) {
        encode_at(
            self.confirmed.lsn(),
            self.send_time,
            self.reply_requested,
            out,
        );
    }
}

/// [`StatusUpdate::encode`] for any position, since only the ack window makes confirmed ones.
fn encode_at(position: Lsn, send_time: Timestamp, reply_requested: bool, out: &mut BytesMut) {
    /// The length field itself, the kind, three positions, the time and the reply flag.
    const FRAME_LENGTH: u32 = 4 + 1 + 3 * 8 + 8 + 1;
    out.put_u8(b'd');
    out.put_u32(FRAME_LENGTH);
    out.put_u8(b'r');
    for _ in ["written", "flushed", "applied"] {
        out.put_u64(position.offset());
    }
    out.put_i64(send_time.0);
    out.put_u8(u8::from(reply_requested));
}

/// Shows the data's length, never the data: payloads must not reach a log.
impl std::fmt::Debug for XLogData<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("XLogData")
            .field("start", &self.start)
            .field("send_time", &self.send_time)
            .field("data_bytes", &self.data.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const XLOG_DATA: &[u8] =
        b"w\0\0\0\x16\xb3\x74\xd8\x48\0\0\0\x17\0\0\0\0\0\0\0\0\0\0\x03\xe8Idata";
    const KEEPALIVE: &[u8] = b"k\0\0\0\x16\xb3\x74\xd8\x48\0\0\0\0\0\0\x03\xe8\x01";

    #[test]
    fn xlog_data() {
        let expected = WalMessage::XLogData(XLogData {
            start: Lsn::new(0x16_b374_d848),
            send_time: Timestamp(1000),
            data: b"Idata",
        });
        assert_eq!(parse(XLOG_DATA), Ok(expected));
        let shown = format!("{expected:?}");
        assert!(
            shown.contains("16/B374D848") && !shown.contains("Idata"),
            "{shown}"
        );
    }

    #[test]
    fn keepalive() {
        let expected = WalMessage::Keepalive(Keepalive {
            wal_end: Lsn::new(0x16_b374_d848),
            send_time: Timestamp(1000),
            reply_requested: true,
        });
        assert_eq!(parse(KEEPALIVE), Ok(expected));
    }

    #[test]
    fn refuses_other_kinds_and_lengths() {
        assert_eq!(parse(b""), Err(DecodeError::Empty));
        assert_eq!(parse(b"x"), Err(DecodeError::UnknownKind { kind: b'x' }));
        assert!(parse(&[KEEPALIVE, b"\0"].concat()).is_err());
        for length in 1..KEEPALIVE.len() {
            assert!(parse(&KEEPALIVE[..length]).is_err(), "{length}");
        }
        for length in 1..25 {
            assert!(parse(&XLOG_DATA[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_status_update_reports_one_position_three_times() {
        let mut frame = BytesMut::new();
        encode_at(Lsn::new(0x16_b374_d848), Timestamp(1000), true, &mut frame);
        let position = b"\0\0\0\x16\xb3\x74\xd8\x48";
        let expected = [
            b"d\0\0\0\x26r",
            &position[..],
            position,
            position,
            b"\0\0\0\0\0\0\x03\xe8\x01",
        ]
        .concat();
        assert_eq!(frame, expected);
    }

    #[test]
    fn a_status_update_without_a_position_is_appended_whole() {
        let update = StatusUpdate {
            confirmed: ConfirmedLsn::NONE,
            send_time: Timestamp(0),
            reply_requested: false,
        };
        let mut out = BytesMut::from(&b"before"[..]);
        update.encode(&mut out);
        assert_eq!(out, [b"befored\0\0\0\x26r", &[0; 33][..]].concat());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(kind in prop::sample::select(b"wk".to_vec()), rest: Vec<u8>) {
            let bytes = [vec![kind], rest].concat();
            let _ = parse(&bytes);
        }
    }
}
