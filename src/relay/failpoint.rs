//! Where a test can make the process die, or break a rule, at an exact moment. Without the
//! feature `failpoints`, which no release has, this is nothing at all.
//!
//! The variable `FAILPOINTS` says what happens: `after-enqueue=500*off->return` lets 500 passes
//! go by and dies at the next one (see the crate `fail` for the language).

/// Where the process may die, as by `kill -9`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Death {
    /// A row message is decoded, and nothing done about it.
    AfterDecode,
    /// The producer has a record.
    AfterEnqueue,
    /// An acknowledgement is entered into the window, and nothing confirmed yet.
    AfterAcknowledgement,
    /// A position is about to be reported to the server.
    BeforeConfirmation,
}

#[cfg(feature = "failpoints")]
mod points {
    use super::Death;

    pub(in crate::relay) fn arm() -> impl Sized {
        fail::FailScenario::setup()
    }

    fn is_reached(name: &str) -> bool {
        fail::eval(name, |_| ()).is_some()
    }

    pub(in crate::relay) fn may_die(death: Death) {
        let name = match death {
            Death::AfterDecode => "after-decode",
            Death::AfterEnqueue => "after-enqueue",
            Death::AfterAcknowledgement => "after-acknowledgement",
            Death::BeforeConfirmation => "before-confirmation",
        };
        if is_reached(name) {
            std::process::abort();
        }
    }

    pub(in crate::relay) fn acknowledges_on_enqueue() -> bool {
        is_reached("confirm-on-enqueue")
    }
}

#[cfg(not(feature = "failpoints"))]
mod points {
    use super::Death;

    pub(in crate::relay) const fn arm() -> impl Sized {}

    pub(in crate::relay) const fn may_die(_: Death) {}

    pub(in crate::relay) const fn acknowledges_on_enqueue() -> bool {
        false
    }
}

pub(super) use points::{acknowledges_on_enqueue, arm, may_die};
