use std::collections::HashMap;

use crate::model::{ConfirmedLsn, Header, Lsn, OutgoingRecord, TableName, TopicName};
use crate::source::postgres::pgoutput::Begin;

/// A row message's place in the log: it has no other name that holds across connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// Its transaction.
    pub(super) begin: Begin,
    /// How many row messages of the transaction come before it.
    pub(super) row: u64,
}

/// The events that the broker refused, each alone, and that go to the dead-letter topic when
/// the stream comes to them again.
#[derive(Debug, Default)]
pub(super) struct Refused {
    reasons: HashMap<Place, String>,
}

impl Refused {
    /// The event at `place` was refused for this reason. Whether this is new: if it is not, it
    /// is the dead letter that was refused.
    pub(super) fn add(&mut self, place: Place, reason: String) -> bool {
        self.reasons.insert(place, reason).is_none()
    }

    /// Why the event at `place` was refused, if it was.
    pub(super) fn reason(&self, place: Option<Place>) -> Option<&str> {
        if self.reasons.is_empty() {
            return None;
        }
        Some(self.reasons.get(&place?)?.as_str())
    }

    /// What is confirmed never comes again.
    pub(super) fn forget_before(&mut self, confirmed: ConfirmedLsn) {
        self.reasons
            .retain(|place, _| place.begin.final_lsn >= confirmed.lsn());
    }
}

/// What goes to the dead-letter topic instead of an event: its record as it would have been, or,
/// where none can be made, key and payload as the database has them; with what stands against it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeadLetter {
    /// The event's id as text.
    pub(super) event: String,
    /// Its table.
    pub(super) table: TableName,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

impl DeadLetter {
    pub(super) fn of_record(record: &OutgoingRecord<'_>, event: String, table: TableName) -> Self {
        let mut letter = Self::of_row(record.key, record.value, event, table);
        letter.headers = record
            .headers
            .iter()
            .map(|header| (header.name.to_owned(), owned(header.value)))
            .collect();
        letter.put("topic", record.topic);
        letter
    }

    pub(super) fn of_row(
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        event: String,
        table: TableName,
    ) -> Self {
        Self {
            event,
            table,
            key: owned(key),
            value: owned(value),
            headers: Vec::new(),
        }
    }

    /// Adds headers with the event's origin, and why it is here.
    pub(super) fn explain(&mut self, lsn: Lsn, reason: &str) {
        self.put("reason", reason);
        self.put("table", &self.table.to_string());
        self.put("lsn", &lsn.to_string());
        self.put("event.id", &self.event.clone());
    }

    fn put(&mut self, name: &str, value: &str) {
        let value = Some(value.as_bytes().to_vec());
        self.headers
            .push((format!("__outboxd.error.{name}"), value));
    }

    /// The headers as a record borrows them.
    pub(super) fn headers(&self) -> Vec<Header<'_>> {
        self.headers
            .iter()
            .map(|(name, value)| Header {
                name,
                value: value.as_deref(),
            })
            .collect()
    }

    /// The record for this topic.
    pub(super) fn record<'a>(
        &'a self,
        topic: &'a TopicName,
        headers: &'a [Header<'a>],
    ) -> OutgoingRecord<'a> {
        OutgoingRecord {
            topic: topic.as_str(),
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers,
        }
    }
}

fn owned(bytes: Option<&[u8]>) -> Option<Vec<u8>> {
    bytes.map(<[u8]>::to_vec)
}
