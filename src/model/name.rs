use std::fmt;

/// The longest identifier PostgreSQL keeps, in bytes (`NAMEDATALEN` - 1).
pub const MAX_IDENTIFIER_BYTES: usize = 63;
/// The longest topic name Kafka takes, in bytes.
pub const MAX_TOPIC_BYTES: usize = 249;

/// A name that its owner would refuse, and the rule it breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}")]
pub struct InvalidName {
    rule: &'static str,
}

/// A replication slot's name: `[a-z0-9_]{1,63}`, the characters PostgreSQL allows
/// (`ReplicationSlotValidateName`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotName(String);

impl SlotName {
    /// Checks the name against PostgreSQL's rule.
    ///
    /// # Errors
    /// When it is empty, too long, or has any other character.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidName> {
        let name = name.into();
        let allowed = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if allowed && (1..=MAX_IDENTIFIER_BYTES).contains(&name.len()) {
            Ok(Self(name))
        } else {
            Err(InvalidName {
                rule: "a replication slot's name has 1 to 63 characters, each a lower-case letter, a digit or _",
            })
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A publication's name: any identifier of 1 to 63 bytes; quoted wherever it enters SQL.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicationName(String);

impl PublicationName {
    /// Checks length and the one character no identifier can hold.
    ///
    /// # Errors
    /// When it is empty, longer than 63 bytes, or contains a NUL character.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidName> {
        let name = name.into();
        if (1..=MAX_IDENTIFIER_BYTES).contains(&name.len()) && !name.contains('\0') {
            Ok(Self(name))
        } else {
            Err(InvalidName {
                rule: "a publication's name has 1 to 63 bytes and no NUL character",
            })
        }
    }

    /// The name as text, unquoted.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A table with its schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    /// The schema (namespace), unquoted.
    pub schema: String,
    /// The table, unquoted.
    pub name: String,
}

/// A topic name Kafka accepts: 1 to 249 of `[a-zA-Z0-9._-]`, not `.` or `..`
/// (`org.apache.kafka.common.internals.Topic`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicName(String);

impl TopicName {
    /// Checks the name against Kafka's rule.
    ///
    /// # Errors
    /// When Kafka would refuse it.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidName> {
        let name = name.into();
        let allowed = name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        if allowed && (1..=MAX_TOPIC_BYTES).contains(&name.len()) && name != "." && name != ".." {
            Ok(Self(name))
        } else {
            Err(InvalidName {
                rule: "a topic's name has 1 to 249 characters, each a letter a-z or A-Z, a digit, '.', '_' or '-', and is not '.' or '..'",
            })
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// === Display ===

impl fmt::Display for SlotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for PublicationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_names_follow_postgresql() {
        for good in ["1slot", "claims_outbox_slot", &"a".repeat(63)] {
            assert!(SlotName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "My_Slot", "my-slot", "slöt", &"a".repeat(64)] {
            assert!(SlotName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn topic_names_follow_kafka() {
        for good in ["claims.claim.events", "a", "A-b_c.1", &"t".repeat(249)] {
            assert!(TopicName::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "Order Line",
            "bestellung/ä",
            "a\nb",
            &"t".repeat(250),
        ] {
            assert!(TopicName::new(bad).is_err(), "{bad}");
        }
    }
}
