//! The ack window: which position may be reported to the server as flushed.
//!
//! Pure and synchronous, and the only maker of a [`ConfirmedLsn`]. It holds rules R1 and R2:
//! the confirmed position is the end of a transaction before which every event is acknowledged
//! without a gap. Everything must be told to it in the order of the stream.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::model::{ConfirmedLsn, Lsn, Sequence};

/// How much may be in flight at once (rule R5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Events (`max.queue.size`).
    pub events: usize,
    /// Bytes (`max.queue.size.in.bytes`).
    pub bytes: usize,
}

/// The stream is not a sequence of transactions. Nothing was changed; stop reading, the
/// position stays where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolViolation {
    /// BEGIN while a transaction is open.
    #[error(
        "the server began a transaction inside another one; report this with the server's version"
    )]
    NestedBegin,
    /// COMMIT while none is open.
    #[error(
        "the server committed a transaction that it had not begun; report this with the server's version"
    )]
    CommitWithoutBegin,
    /// An event while none is open.
    #[error("the server sent a row outside a transaction; report this with the server's version")]
    EventOutsideTransaction,
}

/// The broker client reported an event acknowledged that is not waiting for that. What it
/// reports cannot be trusted, so the window confirms nothing more: start anew with a new
/// producer and a new window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the broker client reported event {} acknowledged, which was not waiting for it", .0.0)]
pub struct AckError(Sequence);

/// Events in flight and the ends of transactions that wait for them.
///
/// An event is *in flight* from [`enqueue`](Self::enqueue) until it and all before it are
/// acknowledged; one that is acknowledged behind a gap still counts, so that neither memory nor
/// what would be sent again after a crash can grow without end.
#[derive(Debug)]
pub struct AckWindow {
    limits: Limits,
    /// The events in flight, oldest first.
    events: VecDeque<Event>,
    /// The number of the oldest event in flight, or of the next event if there is none.
    first: u64,
    /// Sum of their sizes.
    bytes: usize,
    /// Ends of transactions not confirmed yet, each waiting for more events than the one
    /// before: so at most one more than there are events.
    commits: VecDeque<PendingCommit>,
    /// While a transaction is open, the number its first event has or will have.
    open_from: Option<u64>,
    /// Nothing at or after this number will be confirmed.
    failed_from: Option<u64>,
    confirmed: ConfirmedLsn,
}

#[derive(Debug)]
struct Event {
    size: usize,
    acknowledged: bool,
}

/// May be confirmed when all events numbered below `waits_for` are acknowledged.
#[derive(Debug)]
struct PendingCommit {
    waits_for: u64,
    end_lsn: Lsn,
}

impl AckWindow {
    /// An empty window; its first event gets number 0.
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            events: VecDeque::new(),
            first: 0,
            bytes: 0,
            commits: VecDeque::new(),
            open_from: None,
            failed_from: None,
            confirmed: ConfirmedLsn::NONE,
        }
    }

    // === What the stream says ===

    /// A transaction begins.
    ///
    /// # Errors
    /// When one is open.
    pub fn begin(&mut self) -> Result<(), ProtocolViolation> {
        if self.in_transaction() {
            return Err(ProtocolViolation::NestedBegin);
        }
        self.open_from = Some(self.next());
        Ok(())
    }

    /// The open transaction is complete and ends before `end_lsn`. Without events it is
    /// confirmed in its turn, at once if nothing is in flight.
    ///
    /// # Errors
    /// When none is open.
    pub fn commit(&mut self, end_lsn: Lsn) -> Result<(), ProtocolViolation> {
        self.open_from
            .take()
            .ok_or(ProtocolViolation::CommitWithoutBegin)?;
        let waits_for = self.next();
        match self.commits.back_mut() {
            // Sent again after a reconnect; what it could confirm is known already.
            Some(last) if end_lsn <= last.end_lsn => {}
            // No event since the last commit: the two are confirmed together.
            Some(last) if last.waits_for == waits_for => last.end_lsn = end_lsn,
            _ => self.commits.push_back(PendingCommit { waits_for, end_lsn }),
        }
        self.advance();
        Ok(())
    }

    /// A keepalive came in its turn, with this WAL end. Taken only when nothing at all is in
    /// flight: no open transaction, no event, no failure.
    pub fn idle_position(&mut self, wal_end: Lsn) {
        if !self.in_transaction() && self.events.is_empty() && self.failed_from.is_none() {
            self.confirm(wal_end);
        }
    }

    /// The connection was lost: the open transaction will be sent again from its BEGIN. What
    /// it has in flight stays so, and the next commit waits for it.
    pub fn abandon_open_transaction(&mut self) {
        self.open_from = None;
    }

    // === What goes to the sink and comes back ===

    /// Whether an event of `size` bytes may be enqueued now. With nothing in flight any may:
    /// one larger than the limit goes alone.
    pub fn has_room(&self, size: usize) -> bool {
        let within_limits = self.events.len() < self.limits.events
            && self.bytes.saturating_add(size) <= self.limits.bytes;
        self.events.is_empty() || within_limits
    }

    /// Numbers an event of the open transaction that is about to go to the sink; `size` is in
    /// bytes. Ask [`has_room`](Self::has_room) first. An event whose number is never reported
    /// back holds up the position for ever: that is the safe side.
    ///
    /// # Errors
    /// When no transaction is open.
    pub fn enqueue(&mut self, size: usize) -> Result<Sequence, ProtocolViolation> {
        if !self.in_transaction() {
            return Err(ProtocolViolation::EventOutsideTransaction);
        }
        let sequence = Sequence(self.next());
        self.events.push_back(Event {
            size,
            acknowledged: false,
        });
        self.bytes = self.bytes.saturating_add(size);
        Ok(sequence)
    }

    /// The event that was numbered last was not handed over after all. Only to be said before
    /// anything else happens; its number is used again.
    pub fn withdraw_last(&mut self) {
        if let Some(event) = self.events.pop_back() {
            self.bytes = self.bytes.saturating_sub(event.size);
        }
    }

    /// The broker has the event. Reports may come in any order.
    ///
    /// # Errors
    /// When the event was never enqueued, or was acknowledged before. The window then counts as
    /// failed from the first event on.
    pub fn acknowledge(&mut self, sequence: Sequence) -> Result<(), AckError> {
        let event = sequence
            .0
            .checked_sub(self.first)
            .and_then(|index| usize::try_from(index).ok())
            .and_then(|index| self.events.get_mut(index))
            .filter(|event| !event.acknowledged);
        let Some(event) = event else {
            self.fail(Sequence(0));
            return Err(AckError(sequence));
        };
        event.acknowledged = true;
        self.advance();
        Ok(())
    }

    /// The broker will never have the event: nothing at or after its number is confirmed any
    /// more, whatever is acknowledged later (rule R3). What stands before it still may be.
    pub fn fail(&mut self, sequence: Sequence) {
        let failed_from = self.failed_from.unwrap_or(sequence.0).min(sequence.0);
        self.failed_from = Some(failed_from);
    }

    /// The server's log is not the one the positions came from (another timeline or system
    /// identifier, or its end lies before what we have received): forgets every position, also
    /// the confirmed one, for it could lie behind transactions of the new log that are not sent
    /// yet. Events stay in flight.
    pub fn forget_positions(&mut self) {
        self.commits.clear();
        self.open_from = None;
        self.confirmed = ConfirmedLsn::NONE;
    }

    // === What it knows ===

    /// The position that may be reported as flushed. Never goes back, but for
    /// [`forget_positions`](Self::forget_positions).
    pub const fn confirmed(&self) -> ConfirmedLsn {
        self.confirmed
    }

    /// Events in flight.
    pub fn in_flight(&self) -> usize {
        self.events.len()
    }

    /// Bytes in flight.
    pub const fn in_flight_bytes(&self) -> usize {
        self.bytes
    }

    /// The event everything else waits for.
    pub fn oldest_unacknowledged(&self) -> Option<Sequence> {
        (!self.events.is_empty()).then_some(Sequence(self.first))
    }

    /// Whether a transaction is open.
    pub const fn in_transaction(&self) -> bool {
        self.open_from.is_some()
    }

    /// How many events of the open transaction were enqueued since its BEGIN; 0 if none is open.
    pub fn open_events(&self) -> u64 {
        self.open_from.map_or(0, |from| self.next() - from)
    }

    /// The number of the next event.
    fn next(&self) -> u64 {
        // A length always fits into 64 bits.
        self.first + self.events.len() as u64
    }

    /// Drops the acknowledged events at the front and confirms the commits that waited for no
    /// others.
    fn advance(&mut self) {
        let failed_from = self.failed_from.unwrap_or(u64::MAX);
        while self.first < failed_from
            && let Some(event) = self.events.front()
            && event.acknowledged
        {
            self.bytes = self.bytes.saturating_sub(event.size);
            self.events.pop_front();
            self.first += 1;
        }
        let done = self.first.min(failed_from);
        while let Some(commit) = self.commits.front()
            && commit.waits_for <= done
        {
            let end_lsn = commit.end_lsn;
            self.commits.pop_front();
            self.confirm(end_lsn);
        }
    }

    fn confirm(&mut self, position: Lsn) {
        self.confirmed = self
            .confirmed
            .max(ConfirmedLsn::everything_before(position));
    }
}
