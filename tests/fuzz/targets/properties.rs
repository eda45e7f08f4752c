//! A `.properties` file. What is read is held against `java-properties`, and comes back when it
//! is written as `java.util.Properties.store` writes it.

use std::fmt::Write as _;

use outboxd::config::properties::{Property, parse};

/// See the module.
pub fn target(input: &[u8]) {
    let text = &*String::from_utf8_lossy(input);
    let lines = text.split(['\n', '\r']).count();
    let properties = match parse(text) {
        Ok(properties) => properties,
        Err(error) => {
            assert!((1..=lines).contains(&error.line));
            assert!(text.contains("\\u"));
            return;
        }
    };
    let begins: Vec<usize> = properties.iter().map(|property| property.line).collect();
    assert!(begins.iter().all(|line| (1..=lines).contains(line)));
    assert!(begins.is_sorted_by(|line, next| line < next));

    let mut stored = String::new();
    for Property { key, value, .. } in &properties {
        store(key, &mut stored);
        stored.push('=');
        store(value, &mut stored);
        stored.push('\n');
    }
    let again = parse(&stored).expect("what was stored is well-formed");
    assert_eq!(pairs(&again), pairs(&properties));
    let lines: Vec<usize> = again.iter().map(|property| property.line).collect();
    assert_eq!(lines, Vec::from_iter(1..=properties.len()));

    as_the_oracle(text);
}

fn pairs(properties: &[Property]) -> Vec<(&str, &str)> {
    let pairs = properties
        .iter()
        .map(|p| (p.key.as_str(), p.value.as_str()));
    pairs.collect()
}

/// Every character that means something is escaped, others than printable ASCII by `\u`.
fn store(text: &str, out: &mut String) {
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(c @ (b' ' | b'=' | b':' | b'#' | b'!' | b'\\')) => {
                out.push('\\');
                out.push(c.into());
            }
            Ok(c @ b'!'..=b'~') => out.push(c.into()),
            _ => write!(out, "\\u{unit:04x}").unwrap(),
        }
    }
}

/// Where both accept the text they read the same. Kept out is what the oracle reads otherwise
/// than Java does.
fn as_the_oracle(text: &str) {
    let blank = |c: char| matches!(c, ' ' | '\t' | '\x0c');
    // It reads Latin-1.
    if !text.is_ascii()
        // It takes the vertical tab for a blank.
        || text.contains('\x0b')
        // It continues a comment that follows a line of nothing but a backslash.
        || text.split(['\n', '\r']).any(|line| line.trim_matches(blank) == "\\")
    {
        return;
    }
    // It drops a property that ends with the file in a backslash.
    let text = format!("{text}\nz=z");
    let mut theirs = Vec::new();
    let read = java_properties::PropertiesIter::new(text.as_bytes())
        .read_into(|key, value| theirs.push((key, value)));
    let ours = parse(&text);
    if let (Ok(()), Ok(ours)) = (read, ours) {
        let theirs = theirs.iter().map(|(key, value)| (&**key, &**value));
        assert_eq!(pairs(&ours), Vec::from_iter(theirs));
    }
}
