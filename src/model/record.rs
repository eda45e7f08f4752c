use std::fmt;

/// The number of an event within one producer's life: 0, 1, 2 … in the order they are handed to
/// the sink. Delivery reports carry it back; each producer's reach nobody but its own window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// One record header. Kafka allows a null value, which is not the same as an empty one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// Header name; names may repeat.
    pub name: &'a str,
    /// Header value's bytes, or null.
    pub value: Option<&'a [u8]>,
}

/// A record ready for the broker: every byte as it will be stored.
#[derive(Clone, Copy)]
pub struct OutgoingRecord<'a> {
    /// A topic name that Kafka accepts.
    pub topic: &'a str,
    /// Key bytes, or a null key.
    pub key: Option<&'a [u8]>,
    /// Value bytes, or a null value (tombstone).
    pub value: Option<&'a [u8]>,
    /// Headers in the order they go out.
    pub headers: &'a [Header<'a>],
}

impl OutgoingRecord<'_> {
    /// Bytes the record occupies in a queue: topic, key, value, header names and values.
    pub fn size(&self) -> usize {
        let bytes = |value: Option<&[u8]>| value.map_or(0, <[u8]>::len);
        let headers: usize = self
            .headers
            .iter()
            .map(|header| header.name.len() + bytes(header.value))
            .sum();
        self.topic.len() + bytes(self.key) + bytes(self.value) + headers
    }
}

/// Shows sizes only: payloads must not reach a log.
impl fmt::Debug for OutgoingRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingRecord")
            .field("topic", &self.topic)
            .field("headers", &self.headers.len())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Header<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}({} bytes)",
            self.name,
            self.value.map_or(0, <[u8]>::len)
        )
    }
}
