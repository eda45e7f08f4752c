//! `tests/COVERAGE.md` names tests that are there.

use std::collections::BTreeSet;
use std::path::Path;

const COVERAGE: &str = include_str!("../COVERAGE.md");

#[test]
fn every_test_that_is_named_is_there_and_each_line_names_one_or_says_why_not() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut numbers = BTreeSet::new();
    for line in COVERAGE.lines().filter(|line| line.starts_with("| BR-")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, _, _, tests] = cells[..] else {
            panic!("four cells are needed: {line}")
        };
        assert!(numbers.insert(number), "{number} is there twice");
        assert!(
            !tests.is_empty(),
            "{number} has neither a test nor a reason"
        );
        for name in tests.split('`').filter(|part| part.contains(".rs")) {
            let (file, test) = name.split_once("::").expect("a file and a function");
            let content = std::fs::read_to_string(root.join(file))
                .unwrap_or_else(|error| panic!("{number} names {file}: {error}"));
            let is_there = content.contains(&format!("fn {test}("));
            assert!(is_there, "{number} names {name}, which is not there");
        }
    }
    assert!(!numbers.is_empty(), "no line is read");
}
