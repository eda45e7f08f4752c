//! The targets under libFuzzer, which chooses inputs by the code they reach: `dev/fuzz` builds
//! and runs it. `OUTBOXD_FUZZ_TARGET` names the target.

#![no_main]
#![allow(clippy::unwrap_used, reason = "a target fails by panicking")]

use std::sync::OnceLock;

mod targets;

static TARGET: OnceLock<targets::Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("OUTBOXD_FUZZ_TARGET").unwrap();
        let found = targets::TARGETS.iter().find(|(known, _)| *known == name);
        found.expect("OUTBOXD_FUZZ_TARGET names a target").1
    });
    target(input);
});
