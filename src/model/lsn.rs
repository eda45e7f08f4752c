use std::fmt;
use std::str::FromStr;

/// A position in PostgreSQL's write-ahead log: a byte offset from its beginning.
///
/// Printed as the server prints it, two hexadecimal halves: `16/B374D848`
/// (PostgreSQL documentation, "pg_lsn Type").
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(u64);

impl Lsn {
    /// `0/0`, which PostgreSQL calls invalid: "no position".
    pub const ZERO: Self = Self(0);

    /// The position `offset` bytes from the beginning of the log.
    pub const fn new(offset: u64) -> Self {
        Self(offset)
    }

    /// The offset in bytes from the beginning of the log, as it stands on the wire.
    pub const fn offset(self) -> u64 {
        self.0
    }

    /// How many bytes of log lie between `earlier` and this position; 0 when it is not earlier.
    pub const fn bytes_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Whether this is `0/0`.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

impl fmt::Debug for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text was not an LSN of the form `16/B374D848`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an LSN; it looks like 16/B374D848")]
pub struct ParseLsnError(String);

impl FromStr for Lsn {
    type Err = ParseLsnError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let half = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_hexdigit());
            digits.then(|| u32::from_str_radix(part, 16).ok()).flatten()
        };
        let parsed = text
            .split_once('/')
            .and_then(|(high, low)| Some((half(high)?, half(low)?)));
        match parsed {
            Some((high, low)) => Ok(Self(u64::from(high) << 32 | u64::from(low))),
            None => Err(ParseLsnError(text.to_owned())),
        }
    }
}

/// A position that may be reported to the server as flushed: every event before it is
/// acknowledged by the broker (rule R1).
///
/// Only `relay::ack` makes one, from the end LSN of a completed transaction or from a
/// keepalive's WAL end when nothing is in flight; `tests/it/architecture.rs` holds this.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfirmedLsn(Lsn);

impl ConfirmedLsn {
    /// Nothing confirmed yet: the server keeps what it has.
    pub const NONE: Self = Self(Lsn::ZERO);

    /// Declares that everything before `lsn` is acknowledged. Called by `relay::ack` alone.
    pub(crate) const fn everything_before(lsn: Lsn) -> Self {
        Self(lsn)
    }

    /// This position, or `limit` where that is earlier: what lies before an earlier position is
    /// acknowledged too.
    pub fn at_most(self, limit: Lsn) -> Self {
        Self(self.0.min(limit))
    }

    /// The position itself.
    pub const fn lsn(self) -> Lsn {
        self.0
    }
}

impl fmt::Display for ConfirmedLsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_and_prints_as_postgresql_does() {
        assert_eq!("16/B374D848".parse(), Ok(Lsn::new(0x16_b374_d848)));
        assert_eq!(Lsn::new(0x16_b374_d848).to_string(), "16/B374D848");
        assert_eq!(Lsn::ZERO.to_string(), "0/0");
    }

    #[test]
    fn refuses_what_is_no_lsn() {
        for text in [
            "",
            "/",
            "0",
            "0/",
            "/0",
            "+1/0",
            "0/ 1",
            "0/123456789",
            "G/0",
            "0/0/0",
        ] {
            assert!(text.parse::<Lsn>().is_err(), "{text}");
        }
    }

    #[test]
    fn distance_never_wraps() {
        assert_eq!(Lsn::new(7).bytes_since(Lsn::new(5)), 2);
        assert_eq!(Lsn::new(5).bytes_since(Lsn::new(7)), 0);
    }

    proptest! {
        #[test]
        fn text_form_round_trips(offset: u64) {
            let lsn = Lsn::new(offset);
            prop_assert_eq!(lsn.to_string().parse::<Lsn>(), Ok(lsn));
        }
    }
}
