use super::Lsn;

/// A replication slot as an operator watches it: a row of `pg_replication_slots`, with
/// positions already turned into distances. What a server of an older version does not have, or
/// says nothing about, is `None` (PostgreSQL documentation, "pg_replication_slots").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotView {
    /// Bytes of log that the slot keeps the server from removing: from `restart_lsn` to the end
    /// of the log. Large while the confirmed lag is small when a long transaction, of anybody,
    /// is open.
    pub retained_wal: Option<u64>,
    /// Bytes of log from the confirmed position to the end of the log.
    pub confirmed_lag: Option<u64>,
    /// Bytes of log that can still be written before the slot is in danger; negative when it
    /// already is, `None` without `max_slot_wal_keep_size`.
    pub safe_wal_size: Option<i64>,
    /// Whether the log it needs is still there.
    pub wal_status: Option<WalStatus>,
    /// Whether a process reads it now.
    pub active: bool,
    /// Which process that is.
    pub active_pid: Option<i64>,
    /// Everything before this is confirmed.
    pub confirmed_flush: Option<Lsn>,
    /// The oldest log it may need again.
    pub restart: Option<Lsn>,
    /// Since when nothing reads it, as the server writes it (17 and later).
    pub inactive_since: Option<String>,
    /// Why the server gave it up (17 and later): `wal_removed`, `rows_removed`,
    /// `wal_level_insufficient`, `idle_timeout`.
    pub invalidation_reason: Option<String>,
}

/// `wal_status` of `pg_replication_slots`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalStatus {
    /// Within `max_wal_size`.
    Reserved,
    /// Beyond it, but kept for the slot.
    Extended,
    /// May be removed at the next checkpoint.
    Unreserved,
    /// Removed: the slot cannot be read any more.
    Lost,
}

impl WalStatus {
    /// All of them, from good to bad.
    pub const ALL: [Self; 4] = [Self::Reserved, Self::Extended, Self::Unreserved, Self::Lost];

    /// The server's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Extended => "extended",
            Self::Unreserved => "unreserved",
            Self::Lost => "lost",
        }
    }

    /// What a word of the server means, if it is known.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}
