use std::fmt;

use super::TableName;

/// A table's object identifier, as Relation and Insert messages carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelationId(pub u32);

/// A data type's object identifier (`pg_type.oid`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeOid(pub u32);

/// What the stream says of a table's shape, from one Relation message until the next
/// (PostgreSQL documentation, "Logical Replication Message Formats").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Object identifier, which row messages refer to.
    pub id: RelationId,
    /// Schema and name at this point of the stream.
    pub table: TableName,
    /// Columns in order, as row messages list their values.
    pub columns: Vec<Column>,
}

/// One column of a [`Relation`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The column's name, unquoted.
    pub name: String,
    /// Its data type.
    pub type_oid: TypeOid,
    /// The type modifier (length, precision), -1 for none.
    pub type_modifier: i32,
    /// Whether it is part of the replica identity.
    pub is_key: bool,
}

/// One column's value, borrowed from the receive buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// The value in the type's text form, in UTF-8 (`client_encoding`), exactly as sent.
    Text(&'a [u8]),
    /// An out-of-line (TOASTed) value that an UPDATE left alone and the server did not send.
    Unchanged,
}

/// The values of one row, one a column of its [`Relation`], in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    values: smallvec::SmallVec<[Value<'a>; 16]>,
}

impl<'a> Row<'a> {
    /// A row of these values.
    pub fn new(values: impl IntoIterator<Item = Value<'a>>) -> Self {
        Self {
            values: values.into_iter().collect(),
        }
    }

    /// The value of the column at `index`, if the row has that many.
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        self.values.get(index).copied()
    }

    /// How many values the row has.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether the row has no columns at all.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// Shows a value's length, never its content: payloads must not reach a log.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Text(bytes) => write!(f, "Text({} bytes)", bytes.len()),
            Self::Unchanged => f.write_str("Unchanged"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_content() {
        let row = Row::new([Value::Text(b"secret payload"), Value::Null]);
        let shown = format!("{row:?}");
        assert!(
            shown.contains("Text(14 bytes)") && !shown.contains("secret"),
            "{shown}"
        );
    }
}
