use std::fmt::Write;

use crate::model::{Header, Lsn};
use crate::source::postgres::pgoutput::Begin;

/// Where an event stands in the log: its transaction, and how many events come before it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) begin: Begin,
    pub(super) sequence: u64,
}

impl Position {
    /// The transaction's commit position, as messages name it.
    pub(super) const fn commit_lsn(self) -> Lsn {
        self.begin.final_lsn
    }
}

/// The headers that say where each event stands (`outboxd.position.headers`): by them a consumer
/// or a tool tells gaps and repeats exactly.
#[derive(Debug, Default)]
pub(super) struct PositionHeaders {
    texts: [String; 3],
}

impl PositionHeaders {
    /// Commit position, number in the transaction from 0 on, and commit time in microseconds
    /// since 1970, by the database's clock.
    const NAMES: [&str; 3] = [
        "__outboxd.position.lsn",
        "__outboxd.position.sequence",
        "__outboxd.position.commit.time",
    ];

    /// Takes the position of the event that comes now.
    pub(super) fn set(&mut self, position: Position) {
        let [lsn, sequence, time] = &mut self.texts;
        let micros = position.begin.commit_time.unix_micros();
        for (text, value) in [
            (lsn, &position.commit_lsn() as &dyn std::fmt::Display),
            (sequence, &position.sequence),
            (time, &micros),
        ] {
            text.clear();
            // Writing to a String never fails.
            let _ = write!(text, "{value}");
        }
    }

    pub(super) fn headers(&self) -> impl Iterator<Item = Header<'_>> {
        let values = self.texts.iter().map(|text| Some(text.as_bytes()));
        Self::NAMES
            .into_iter()
            .zip(values)
            .map(|(name, value)| Header { name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::postgres::pgoutput::{Timestamp, Xid};

    #[test]
    fn texts_are_of_the_last_position() {
        let position = |lsn, sequence| Position {
            begin: Begin {
                final_lsn: Lsn::new(lsn),
                commit_time: Timestamp(-946_684_800_000_000 + 7),
                xid: Xid(1),
            },
            sequence,
        };
        let mut headers = PositionHeaders::default();
        headers.set(position(0x1_0000_0000_1234, 12_345));
        headers.set(position(0x1_0000_00AB, 1));
        let texts: Vec<&str> = headers
            .headers()
            .map(|header| std::str::from_utf8(header.value.unwrap()).unwrap())
            .collect();
        assert_eq!(texts, ["1/AB", "1", "7"]);
    }
}
