//! Bytes from the replication connection: cut into protocol messages by `Inbound`, the content
//! of each CopyData read by `walmsg::parse`, and what the plugin wrote by the decoder. Both are
//! held against the protocol's definition, written down here a second time.

use outboxd::source::postgres::Inbound;
use outboxd::source::postgres::pgoutput::Timestamp;
use outboxd::source::postgres::walmsg::{Keepalive, WalMessage, XLogData, parse};

use super::pgoutput;

/// Kind, start, WAL end and time.
const XLOG_DATA_HEADER: usize = 1 + 8 + 8 + 8;
/// Kind, WAL end, time and the reply flag.
const KEEPALIVE: usize = 1 + 8 + 8 + 1;

/// See the module. The input is read twice: as bytes of the connection, and as the content of
/// one CopyData.
pub fn target(input: &[u8]) {
    connection(input);
    content(input);
}

fn connection(input: &[u8]) {
    let mut inbound = Inbound::holding(input);
    let mut rest = input;
    loop {
        assert_eq!(inbound.unread(), rest);
        let front = match (inbound.copy_data(), front(rest)) {
            (Err(_), Front::Malformed) => return,
            (Ok(None), front @ (Front::Incomplete | Front::Whole(..))) => front,
            (Ok(Some(body)), Front::Whole(b'd', expected, _)) => {
                assert_eq!(body, expected);
                content(body);
                front(rest)
            }
            (found, _) => panic!("{found:?} at the front of {}", rest.escape_ascii()),
        };
        match front {
            Front::Whole(b'd', _, behind) => {
                inbound.consume_copy_data().unwrap();
                rest = behind;
            }
            Front::Whole(_, _, behind) => match inbound.pass_over() {
                Ok(true) => rest = behind,
                Ok(false) => panic!("a whole message is not taken"),
                Err(_) => return,
            },
            Front::Incomplete | Front::Malformed => {
                assert!(matches!(inbound.pass_over(), Ok(false)));
                return;
            }
        }
    }
}

/// What stands at the front: a tag, the length of what follows, itself included, and that.
enum Front<'a> {
    Incomplete,
    Malformed,
    /// Tag, body and what is behind the message.
    Whole(u8, &'a [u8], &'a [u8]),
}

fn front(bytes: &[u8]) -> Front<'_> {
    let Some((&[tag, a, b, c, d], behind)) = bytes.split_first_chunk() else {
        return Front::Incomplete;
    };
    let length = i32::from_be_bytes([a, b, c, d]);
    let Some(length) = usize::try_from(length).ok().and_then(|l| l.checked_sub(4)) else {
        return Front::Malformed;
    };
    match behind.split_at_checked(length) {
        Some((body, behind)) => Front::Whole(tag, body, behind),
        None => Front::Incomplete,
    }
}

fn content(bytes: &[u8]) {
    let number = |at: usize| {
        let number = bytes.get(at..at + 8).expect("a length that was checked");
        u64::from_be_bytes(number.try_into().unwrap())
    };
    let time = |at| Timestamp(number(at).cast_signed());
    match (parse(bytes), bytes.first()) {
        (Ok(WalMessage::XLogData(message)), Some(b'w')) if bytes.len() >= XLOG_DATA_HEADER => {
            let XLogData {
                start,
                send_time,
                data,
            } = message;
            assert_eq!((start.offset(), send_time), (number(1), time(17)));
            let (_, expected) = bytes.split_at(XLOG_DATA_HEADER);
            assert_eq!(data.as_ptr_range(), expected.as_ptr_range());
            pgoutput::target(data);
        }
        (Ok(WalMessage::Keepalive(message)), Some(b'k')) if bytes.len() == KEEPALIVE => {
            let Keepalive {
                wal_end,
                send_time,
                reply_requested,
            } = message;
            assert_eq!((wal_end.offset(), send_time), (number(1), time(9)));
            assert_eq!(reply_requested, bytes.last() != Some(&0));
        }
        (Err(_), Some(b'w')) if bytes.len() < XLOG_DATA_HEADER => {}
        (Err(_), Some(b'k')) if bytes.len() != KEEPALIVE => {}
        (Err(_), first) if !matches!(first, Some(b'w' | b'k')) => {}
        (found, _) => panic!("read as {found:?}"),
    }
}
