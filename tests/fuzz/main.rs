//! Each target of `targets/` over the inputs kept in `corpus/` and a fixed number of mutations
//! of them, the same in every run. `make fuzz` lets libFuzzer look further.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod mutate;
mod targets;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use mutate::Mutator;

/// How many mutations each target gets: a few seconds' worth.
const MUTATIONS: usize = 20_000;
/// An input takes microseconds; a pattern that backtracks up to its limit, a second or two.
const HANGS: Duration = Duration::from_secs(20);

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    // The order of a folder differs between machines.
    files.sort();
    let read = |file: PathBuf| {
        let input = std::fs::read(&file).unwrap();
        (file, input)
    };
    files.into_iter().map(read).collect()
}

/// Runs the target, and shows the input at which it panics or from which it does not return.
fn run(name: &str, mutations: usize) {
    let (_, target) = *targets::TARGETS
        .iter()
        .find(|(known, _)| *known == name)
        .unwrap();
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "{name} has no inputs");
    let mut mutator = Mutator::new(corpus.iter().map(|(_, input)| input.clone()).collect());
    let kept = corpus
        .into_iter()
        .map(|(file, input)| (file.display().to_string(), input));
    let mutated = (1..=mutations).map(|number| {
        let origin = format!("mutation {number} (keep it in tests/fuzz/corpus/{name})");
        (origin, mutator.input())
    });
    let inputs = kept.chain(mutated);

    // Runs beside this thread, which waits for each input.
    let (give, given) = sync_channel::<Vec<u8>>(0);
    let (done, is_done) = sync_channel::<()>(0);
    let runner = std::thread::spawn(move || {
        for input in given {
            target(&input);
            if done.send(()).is_err() {
                return;
            }
        }
    });
    for (origin, input) in inputs {
        give.send(input.clone()).unwrap();
        let failure = match is_done.recv_timeout(HANGS) {
            Ok(()) => continue,
            Err(RecvTimeoutError::Timeout) => "does not return from",
            Err(RecvTimeoutError::Disconnected) => "panics at",
        };
        panic!("{name} {failure} {origin}: b\"{}\"", input.escape_ascii());
    }
    drop(give);
    runner.join().unwrap();
}

#[test]
fn pgoutput() {
    run("pgoutput", MUTATIONS);
}

#[test]
fn placement() {
    run("placement", MUTATIONS);
}

#[test]
fn properties() {
    run("properties", MUTATIONS);
}

#[test]
fn replication() {
    run("replication", MUTATIONS);
}

/// Fewer, because each input compiles several patterns.
#[test]
fn topic() {
    run("topic", MUTATIONS / 10);
}

#[test]
fn mutations_repeat_and_differ() {
    let inputs = |seeds: &[&[u8]]| {
        let mut mutator = Mutator::new(seeds.iter().map(|seed| seed.to_vec()).collect());
        Vec::from_iter((0..100).map(|_| mutator.input()))
    };
    let first = inputs(&[b"one", b"another"]);
    assert_eq!(first, inputs(&[b"one", b"another"]));
    let different: std::collections::BTreeSet<_> = first.iter().collect();
    assert!(different.len() > 80, "{}", different.len());
    assert_eq!(inputs(&[b""]).len(), 100, "an empty input can be mutated");
}
