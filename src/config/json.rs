//! Reads a connector's JSON as Kafka Connect takes it: the configuration object itself, or
//! `{"name": …, "config": {…}}` around it as in `POST /connectors`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

/// One key of the configuration with the line its value stands on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) line: usize,
    pub(super) value: MemberValue,
}

/// What stands behind a key.
#[derive(PartialEq, Eq)]
pub(super) enum MemberValue {
    /// A string's content, or a number or boolean as it is written.
    Text(String),
    /// `null`: the same as leaving the key out, as in Connect.
    Null,
    /// An object or array, which no configuration value can be.
    Nested,
}

/// Shows the kind only: the text can be a secret.
impl fmt::Debug for MemberValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text",
            Self::Null => "Null",
            Self::Nested => "Nested",
        })
    }
}

/// A connector's configuration as it is written, in order, duplicates included.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) members: Vec<Member>,
    /// Keys beside `config` that mean nothing to a connector, with their lines.
    pub(super) strays: Vec<(String, usize)>,
}

/// Why the text is not a connector's JSON. Never quotes the text: it can hold secrets.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum JsonError {
    #[error("this is not valid JSON (column {column})")]
    Syntax { line: usize, column: usize },
    #[error("the JSON ends too early")]
    Truncated { line: usize },
    #[error("a connector's JSON is one object of keys and values")]
    NotAnObject { line: usize },
}

impl JsonError {
    /// The line it was noticed on, counted from 1.
    pub(super) fn line(&self) -> usize {
        match self {
            Self::Syntax { line, .. } | Self::Truncated { line } | Self::NotAnObject { line } => {
                *line
            }
        }
    }
}

/// What surrounds `config` in Connect's requests and answers besides `name`.
const CONNECT_ENVELOPE: [&str; 3] = ["initial_state", "tasks", "type"];

/// Reads `text`.
pub(super) fn parse(text: &str) -> Result<Document, JsonError> {
    let outer = object(text, text)?;
    let Some((_, config)) = outer
        .iter()
        .find(|(key, value)| key == "config" && value.get().starts_with('{'))
    else {
        return Ok(Document {
            members: members(outer, text)?,
            strays: Vec::new(),
        });
    };
    let mut inner = members(object(config.get(), text)?, text)?;
    let mut document = Document {
        members: Vec::new(),
        strays: Vec::new(),
    };
    for member in members(outer, text)? {
        match member.key.as_str() {
            "name" => {
                // Connect's own answers carry the name in both places.
                inner.retain(|other| other.key != "name" || other.value != member.value);
                document.members.push(member);
            }
            "config" => {}
            key if CONNECT_ENVELOPE.contains(&key) => {}
            _ => document.strays.push((member.key, member.line)),
        }
    }
    document.members.append(&mut inner);
    Ok(document)
}

/// The members of one object, each value still as text borrowed from `json`, which is a part
/// of `whole`.
fn object<'a>(json: &'a str, whole: &str) -> Result<Vec<(String, &'a RawValue)>, JsonError> {
    serde_json::from_str::<Members<'a>>(json)
        .map(|members| members.0)
        .map_err(|error| located(&error, line_of(json, whole)))
}

fn members(object: Vec<(String, &RawValue)>, whole: &str) -> Result<Vec<Member>, JsonError> {
    let member = |(key, raw): (String, &RawValue)| {
        let line = line_of(raw.get(), whole);
        let value = match raw.get().bytes().next() {
            Some(b'"') => MemberValue::Text(
                serde_json::from_str(raw.get()).map_err(|error| located(&error, line))?,
            ),
            Some(b'{' | b'[') => MemberValue::Nested,
            Some(b'n') => MemberValue::Null,
            _ => MemberValue::Text(raw.get().to_owned()),
        };
        Ok(Member { key, line, value })
    };
    object.into_iter().map(member).collect()
}

/// The line of `whole` on which its slice `part` begins, counted from 1.
fn line_of(part: &str, whole: &str) -> usize {
    let offset = part.as_ptr().addr().saturating_sub(whole.as_ptr().addr());
    1 + whole
        .bytes()
        .take(offset)
        .filter(|&byte| byte == b'\n')
        .count()
}

/// serde's own message is left out: it may quote the value.
fn located(error: &serde_json::Error, first_line: usize) -> JsonError {
    let line = first_line + error.line().saturating_sub(1);
    match error.classify() {
        Category::Eof => JsonError::Truncated { line },
        Category::Data => JsonError::NotAnObject { line },
        Category::Syntax | Category::Io => JsonError::Syntax {
            line,
            column: error.column(),
        },
    }
}

/// An object's members in order with duplicates, which a map would swallow.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor).map(Members)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(key: &str, line: usize, value: &str) -> Member {
        Member {
            key: key.into(),
            line,
            value: MemberValue::Text(value.into()),
        }
    }

    #[test]
    fn reads_the_bare_configuration_with_the_line_of_each_value() {
        let json = "{\n  \"a\": \"x\",\n\n  \"b\": 5432, \"c\": true,\n  \"d\": null,\n  \"e\": {\"f\": 1},\n\"g\": [\n1]}";
        let document = parse(json).unwrap();
        let expected = [
            text("a", 2, "x"),
            text("b", 4, "5432"),
            text("c", 4, "true"),
            Member {
                key: "d".into(),
                line: 5,
                value: MemberValue::Null,
            },
            Member {
                key: "e".into(),
                line: 6,
                value: MemberValue::Nested,
            },
            Member {
                key: "g".into(),
                line: 7,
                value: MemberValue::Nested,
            },
        ];
        assert!(document.members == expected, "{document:?}");
        assert!(document.strays.is_empty());
    }

    #[test]
    fn reads_the_form_that_connect_is_posted() {
        let json = "{\"name\": \"n\",\n\"tasks\": [],\n\"confg\": 1, \"config\": {\n\"a\": \"\\u00e4\\n\",\n\"name\": \"n\"}}";
        let document = parse(json).unwrap();
        assert!(
            document.members == [text("name", 1, "n"), text("a", 4, "ä\n")],
            "{document:?}"
        );
        assert_eq!(document.strays, [("confg".to_owned(), 3)]);
    }

    #[test]
    fn keeps_two_names_that_differ() {
        let document = parse(r#"{"name": "n", "config": {"name": "m"}}"#).unwrap();
        assert_eq!(document.members.len(), 2);
    }

    #[test]
    fn keeps_duplicates() {
        let document = parse("{\"a\": 1,\n\"a\": 1}").unwrap();
        assert!(document.members == [text("a", 1, "1"), text("a", 2, "1")]);
    }

    #[test]
    fn says_where_the_json_is_broken_without_quoting_it() {
        for (json, line) in [
            ("{\"a\": 1\n\"hunter2\": 2}", 2),
            ("{\"a\": \"hunter2\",\n\n", 3),
            ("\"hunter2\"", 1),
            ("[1]", 1),
            ("", 1),
            ("{\"config\": {\"a\":\n\"\\ud800 hunter2\"}}", 2),
        ] {
            let error = parse(json).unwrap_err();
            assert_eq!(error.line(), line, "{json} {error:?}");
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }
}
