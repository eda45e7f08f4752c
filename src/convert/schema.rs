use crate::model::TypeOid;

/// What Kafka Connect would know of a value: its type, and the meaning Debezium adds by a
/// schema name (`org.apache.kafka.connect.data.Schema`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// The type.
    pub kind: Kind,
    /// The schema's name, for types with a meaning of their own.
    pub name: Option<&'static str>,
    /// The schema's version.
    pub version: Option<i32>,
    /// Whether null is allowed: the column has no NOT NULL.
    pub optional: bool,
}

/// A Connect type (`Schema.Type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    String,
    /// 16-bit integer.
    Int16,
    /// 32-bit integer.
    Int32,
    /// 64-bit integer.
    Int64,
    /// True or false.
    Boolean,
    /// Bytes.
    Bytes,
}

/// The column's type has no schema here yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "columns of this type (oid {type_oid}) cannot be sent yet; text, varchar, char, uuid, json, jsonb, smallint, integer, bigint, oid, boolean and bytea can"
)]
pub struct UnsupportedType {
    type_oid: u32,
}

impl Schema {
    /// The schema Debezium's PostgreSQL connector gives a column, with its options at their
    /// defaults (`PostgresValueConverter.schemaBuilder`). Column defaults are not part of it.
    ///
    /// # Errors
    /// When the type is not known here.
    pub fn of_column(type_oid: TypeOid, not_null: bool) -> Result<Self, UnsupportedType> {
        let plain = |kind| Self {
            kind,
            name: None,
            version: None,
            optional: !not_null,
        };
        let named = |name| Self {
            name: Some(name),
            version: Some(1),
            ..plain(Kind::String)
        };
        match type_oid {
            TypeOid::TEXT | TypeOid::VARCHAR | TypeOid::BPCHAR => Ok(plain(Kind::String)),
            TypeOid::UUID => Ok(named("io.debezium.data.Uuid")),
            TypeOid::JSON | TypeOid::JSONB => Ok(named("io.debezium.data.Json")),
            TypeOid::INT2 => Ok(plain(Kind::Int16)),
            TypeOid::INT4 => Ok(plain(Kind::Int32)),
            TypeOid::INT8 | TypeOid::OID => Ok(plain(Kind::Int64)),
            TypeOid::BOOL => Ok(plain(Kind::Boolean)),
            TypeOid::BYTEA => Ok(plain(Kind::Bytes)),
            TypeOid(type_oid) => Err(UnsupportedType { type_oid }),
        }
    }

    /// Text that is always there, as in Debezium's context headers.
    pub const fn text() -> Self {
        Self {
            kind: Kind::String,
            name: None,
            version: None,
            optional: false,
        }
    }
}

impl Kind {
    /// The type's name in a JSON schema (`org.apache.kafka.connect.json.JsonSchema`).
    pub(super) const fn json_name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Boolean => "boolean",
            Self::Bytes => "bytes",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_debeziums_schemas() {
        let uuid = Schema::of_column(TypeOid::UUID, true).unwrap();
        assert_eq!(
            uuid,
            Schema {
                kind: Kind::String,
                name: Some("io.debezium.data.Uuid"),
                version: Some(1),
                optional: false,
            }
        );
        for (type_oid, kind) in [
            (TypeOid::VARCHAR, Kind::String),
            (TypeOid::INT2, Kind::Int16),
            (TypeOid::INT4, Kind::Int32),
            (TypeOid::OID, Kind::Int64),
            (TypeOid::BOOL, Kind::Boolean),
            (TypeOid::BYTEA, Kind::Bytes),
        ] {
            let schema = Schema::of_column(type_oid, false).unwrap();
            assert!(
                schema.kind == kind && schema.name.is_none() && schema.optional,
                "{schema:?}"
            );
        }
    }

    #[test]
    fn other_types_are_refused_rather_than_guessed() {
        // name, numeric, timestamptz, and a type made in the database.
        for type_oid in [19, 1700, 1184, 16_500] {
            let error = Schema::of_column(TypeOid(type_oid), false)
                .unwrap_err()
                .to_string();
            assert!(error.contains(&format!("(oid {type_oid})")), "{error}");
        }
    }
}
