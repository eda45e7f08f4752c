//! What reads bytes or text from outside, each with what must hold of any input. A target panics
//! when it does not.

mod pgoutput;
mod placement;
mod properties;
mod replication;
mod topic;

/// Takes any input.
pub type Target = fn(&[u8]);

/// The targets by name; each has its inputs in the folder of that name below `tests/fuzz/corpus`.
pub const TARGETS: [(&str, Target); 5] = [
    ("pgoutput", pgoutput::target),
    ("placement", placement::target),
    ("properties", properties::target),
    ("replication", replication::target),
    ("topic", topic::target),
];
