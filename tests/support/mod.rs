//! What the tests stand on: services, databases, the outboxd process, an independent consumer
//! and a workload that knows what it wrote.

// Each test binary and benchmark uses a part of this.
#![allow(dead_code, reason = "shared by several test binaries")]

pub mod cluster;
pub mod database;
pub mod outboxd;
pub mod proxy;
pub mod second_slot;
pub mod services;
pub mod topic;
pub mod workload;

use std::time::{Duration, Instant};

/// How long anything may take before a test gives up. Generous: a busy machine is no failure.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Asks until the answer is there; panics with `what` after [`PATIENCE`].
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(
            Instant::now() < deadline,
            "waited {PATIENCE:?} in vain: {what}"
        );
        pause().await;
    }
}

/// The pause between two looks at a condition; nothing else ever waits for a time.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// What comes first of each, in order: without what came again.
pub fn first_copies<T: Ord + Clone>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = std::collections::BTreeSet::new();
    all.into_iter()
        .filter(|one| seen.insert(one.clone()))
        .collect()
}
