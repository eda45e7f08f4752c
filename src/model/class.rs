/// What the relay does about an error (rule R9). Every error type that reaches the
/// supervisor has a `class()`; the supervisor decides by it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// It will mend itself: a server restarting, a network cut. Try again, with back-off.
    Retry,
    /// The producer or the stream is unusable, nothing is lost: start both anew from the
    /// slot's confirmed position.
    Rewind,
    /// This one event can never be sent as it is.
    Poison,
    /// Only a person can mend it; the message says how.
    Fatal,
}
