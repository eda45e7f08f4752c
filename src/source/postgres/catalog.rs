use std::collections::HashMap;

use super::{Database, SourceError};
use crate::model::RelationId;

/// What the stream does not say of a table but the catalog does (rule R6).
///
/// As in Debezium (`PgOutputMessageDecoder.handleRelationMessage`) this is the catalog's state
/// when the Relation message is handled, not when the row was written.
#[derive(Debug, Clone, Default)]
pub struct TableFacts {
    columns: HashMap<String, ColumnFacts>,
}

/// Facts of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnFacts {
    /// Declared NOT NULL, or part of the primary key.
    pub not_null: bool,
    /// Has a default that is a constant, which a schema in a message would carry.
    pub constant_default: bool,
}

impl TableFacts {
    /// The facts of the column, if the catalog knows it.
    pub fn column(&self, name: &str) -> Option<ColumnFacts> {
        self.columns.get(name).copied()
    }
}

impl Database {
    /// Reads the facts of a table's columns.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub async fn table_facts(&self, id: RelationId) -> Result<TableFacts, SourceError> {
        let rows = self
            .query(
                "reading the outbox table's columns",
                "SELECT a.attname, a.attnotnull,
                        a.attgenerated = '' AND pg_catalog.pg_get_expr(d.adbin, d.adrelid) IS NOT NULL,
                        coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '')
                 FROM pg_catalog.pg_attribute a
                 LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
                 WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped",
                &[&id.0],
            )
            .await?;
        let columns = rows
            .iter()
            .map(|row| {
                let has_default: bool = row.get(2);
                let facts = ColumnFacts {
                    not_null: row.get(1),
                    constant_default: has_default && is_constant(row.get(3)),
                };
                (row.get(0), facts)
            })
            .collect();
        Ok(TableFacts { columns })
    }
}

/// Whether a default's expression, as `pg_get_expr` prints it, is a constant: a literal,
/// perhaps with a cast, but no function call.
fn is_constant(expression: &str) -> bool {
    let constant_start = expression.starts_with(['\'', '-', '(', 'B', 'b'])
        || expression.starts_with(|c: char| c.is_ascii_digit())
        || matches!(expression, "true" | "false");
    let calls_function = expression.char_indices().any(|(at, c)| {
        c == '(' && expression[..at].ends_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }) && !expression.starts_with('\'');
    constant_start && !calls_function
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_told_from_function_calls() {
        for constant in [
            "'new'::text",
            "7",
            "'-1'::integer",
            "(-1)",
            "true",
            "'a(b'::text",
            "1.50",
        ] {
            assert!(is_constant(constant), "{constant}");
        }
        for call in [
            "gen_random_uuid()",
            "now()",
            "nextval('s'::regclass)",
            "CURRENT_TIMESTAMP",
            "",
            "NULL::text",
        ] {
            assert!(!is_constant(call), "{call}");
        }
    }
}
