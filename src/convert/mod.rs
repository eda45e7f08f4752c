//! Kafka Connect's converters: from a column's value, in PostgreSQL's text form, to the bytes
//! that stand in Kafka. Pure.
//!
//! A [`Converter`] is chosen once by configuration; an [`Encoder`] is it bound to one column,
//! with everything prepared that is the same for each event.

mod encoder;
mod json;
mod schema;

use std::fmt;

pub use encoder::{ConvertError, Encoder, Piece};
pub use schema::{Kind, Schema, UnsupportedType};

const STRING_CONVERTER: &str = "org.apache.kafka.connect.storage.StringConverter";
const JSON_CONVERTER: &str = "org.apache.kafka.connect.json.JsonConverter";
const SIMPLE_HEADER_CONVERTER: &str = "org.apache.kafka.connect.storage.SimpleHeaderConverter";
/// Converters that are known and not built yet.
const NOT_YET: [&str; 5] = [
    "org.apache.kafka.connect.converters.ByteArrayConverter",
    "ByteArrayConverter",
    "io.debezium.converters.BinaryDataConverter",
    "BinaryDataConverter",
    "io.debezium.converters.ByteArrayConverter",
];

/// The converters of a connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// For record keys (`key.converter`).
    pub key: Converter,
    /// For record values (`value.converter`).
    pub value: Converter,
    /// For header values (`header.converter`).
    pub header: Converter,
}

/// The part of a record that a converter makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The key.
    Key,
    /// The value.
    Value,
    /// A header's value.
    Header,
}

/// How values become bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Converter {
    /// Text as it is, `bytea` as its own bytes: what is done when no Connect worker says
    /// otherwise.
    Plain,
    /// `org.apache.kafka.connect.storage.StringConverter`: text as it is.
    String,
    /// `org.apache.kafka.connect.json.JsonConverter`: a JSON value.
    Json {
        /// Whether the value stands beside its schema (`schemas.enable`, on by default).
        schemas: bool,
    },
    /// `org.apache.kafka.connect.storage.SimpleHeaderConverter`: text as it is, `bytea` in
    /// base64.
    SimpleHeader,
}

/// A converter that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConverterError {
    /// No converter by this name is known.
    #[error("the converter '{class}' is not supported; StringConverter and JsonConverter are")]
    UnknownClass {
        /// The class as configured.
        class: String,
    },
    /// A converter that Connect knows and this program does not yet.
    #[error("the converter '{class}' is not supported yet; StringConverter and JsonConverter are")]
    NotYet {
        /// The class as configured.
        class: String,
    },
    /// SimpleHeaderConverter makes headers only.
    #[error(
        "SimpleHeaderConverter converts headers only; use StringConverter or JsonConverter here"
    )]
    HeadersOnly,
    /// A property of the converter that would change bytes in a way not built yet.
    #[error("{class}: {property}={value} is not supported; {instead}")]
    Property {
        /// The converter's simple name.
        class: &'static str,
        /// The property, without the converter's prefix.
        property: &'static str,
        /// Its value.
        value: String,
        /// What can be written.
        instead: &'static str,
    },
}

impl Converter {
    /// The converter for `key.converter`, `value.converter` or `header.converter`: a class name,
    /// or one of the short names Connect takes (`JsonConverter`, `Json`). `property` gives the
    /// converter's own properties by their names behind the prefix, like `schemas.enable`.
    ///
    /// # Errors
    /// When the class is not supported, or a property asks for other bytes than can be made.
    pub fn from_class(
        role: Role,
        class: &str,
        property: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConverterError> {
        let class = class.trim();
        match class {
            STRING_CONVERTER | "StringConverter" | "String" => string(property),
            JSON_CONVERTER | "JsonConverter" | "Json" => json(property),
            SIMPLE_HEADER_CONVERTER | "SimpleHeaderConverter" | "Simple" => match role {
                Role::Header => Ok(Self::SimpleHeader),
                Role::Key | Role::Value => Err(ConverterError::HeadersOnly),
            },
            _ if NOT_YET.contains(&class) => Err(ConverterError::NotYet {
                class: class.to_owned(),
            }),
            _ => Err(ConverterError::UnknownClass {
                class: class.to_owned(),
            }),
        }
    }

    /// The converter when nothing is configured and there is no Connect worker: keys and values
    /// as they are, headers as a worker's default writes them, which is as text too.
    pub const fn plain(role: Role) -> Self {
        match role {
            Role::Key | Role::Value => Self::Plain,
            Role::Header => Self::SimpleHeader,
        }
    }

    /// Whether a column's NOT NULL shows in the bytes, so that it has to be looked up.
    pub const fn needs_nullability(&self) -> bool {
        matches!(self, Self::Json { schemas: true })
    }

    /// Binds the converter to a column with this schema.
    ///
    /// # Errors
    /// When the converter cannot make anything sensible of the column's type.
    pub fn encoder(&self, schema: &Schema) -> Result<Encoder, ConvertError> {
        Encoder::new(*self, schema)
    }
}

/// The class's name, or "text as it is".
impl fmt::Display for Converter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => f.write_str("text as it is"),
            Self::String => f.write_str(STRING_CONVERTER),
            Self::Json { schemas } => write!(f, "{JSON_CONVERTER} (schemas.enable={schemas})"),
            Self::SimpleHeader => f.write_str(SIMPLE_HEADER_CONVERTER),
        }
    }
}

fn string(property: &dyn Fn(&str) -> Option<String>) -> Result<Converter, ConverterError> {
    let encoding = property("converter.encoding").unwrap_or_default();
    match encoding.trim().to_ascii_uppercase().as_str() {
        "" | "UTF8" | "UTF-8" => Ok(Converter::String),
        _ => Err(ConverterError::Property {
            class: "StringConverter",
            property: "converter.encoding",
            value: encoding,
            instead: "only UTF-8 is",
        }),
    }
}

fn json(property: &dyn Fn(&str) -> Option<String>) -> Result<Converter, ConverterError> {
    let refused = |property, value, instead| ConverterError::Property {
        class: "JsonConverter",
        property,
        value,
        instead,
    };
    let schemas = flag(property, "schemas.enable")
        .map_err(|value| refused("schemas.enable", value, TRUE_OR_FALSE))?;
    let nulls = "replace.null.with.default";
    match flag(property, nulls) {
        Ok(true) => {}
        Ok(false) => return Err(refused(nulls, "false".to_owned(), "leave it at true")),
        Err(value) => return Err(refused(nulls, value, TRUE_OR_FALSE)),
    }
    match property("decimal.format") {
        Some(format) if !format.trim().eq_ignore_ascii_case("BASE64") => {
            Err(refused("decimal.format", format, "leave it at BASE64"))
        }
        _ => Ok(Converter::Json { schemas }),
    }
}

const TRUE_OR_FALSE: &str = "write true or false";

/// A boolean property that is true by default; what was written, if it is neither word.
fn flag(property: &dyn Fn(&str) -> Option<String>, name: &str) -> Result<bool, String> {
    match property(name) {
        None => Ok(true),
        Some(value) if value.trim().eq_ignore_ascii_case("true") => Ok(true),
        Some(value) if value.trim().eq_ignore_ascii_case("false") => Ok(false),
        Some(value) => Err(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converter(
        role: Role,
        class: &str,
        properties: &[(&str, &str)],
    ) -> Result<Converter, String> {
        let property = |name: &str| {
            let found = properties.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Converter::from_class(role, class, &property).map_err(|error| error.to_string())
    }

    #[test]
    fn classes_go_by_their_full_and_their_short_names() {
        for class in [STRING_CONVERTER, "StringConverter", "String"] {
            assert_eq!(converter(Role::Key, class, &[]), Ok(Converter::String));
        }
        for class in [JSON_CONVERTER, "JsonConverter", "Json", " JsonConverter "] {
            assert_eq!(
                converter(Role::Value, class, &[]),
                Ok(Converter::Json { schemas: true })
            );
        }
        for class in [SIMPLE_HEADER_CONVERTER, "SimpleHeaderConverter", "Simple"] {
            assert_eq!(
                converter(Role::Header, class, &[]),
                Ok(Converter::SimpleHeader)
            );
        }
    }

    #[test]
    fn schemas_can_be_switched_off() {
        let json = |value| converter(Role::Value, JSON_CONVERTER, &[("schemas.enable", value)]);
        assert_eq!(json("false"), Ok(Converter::Json { schemas: false }));
        assert_eq!(json(" True"), Ok(Converter::Json { schemas: true }));
        assert!(
            json("no")
                .unwrap_err()
                .contains("schemas.enable=no is not supported; write true or false")
        );
    }

    #[test]
    fn what_would_change_bytes_is_refused() {
        for (class, property, value) in [
            (JSON_CONVERTER, "decimal.format", "NUMERIC"),
            (JSON_CONVERTER, "replace.null.with.default", "false"),
            (STRING_CONVERTER, "converter.encoding", "ISO-8859-1"),
        ] {
            let error = converter(Role::Value, class, &[(property, value)]).unwrap_err();
            assert!(
                error.contains(&format!("{property}={value} is not supported")),
                "{error}"
            );
        }
        let defaults = [
            ("decimal.format", "base64"),
            ("replace.null.with.default", "true"),
            ("converter.encoding", "UTF-8"),
        ];
        for class in [JSON_CONVERTER, STRING_CONVERTER] {
            assert!(converter(Role::Key, class, &defaults).is_ok());
        }
    }

    #[test]
    fn other_classes_are_refused_by_name() {
        for (class, words) in [
            (
                "org.apache.kafka.connect.converters.ByteArrayConverter",
                "is not supported yet",
            ),
            (
                "io.debezium.converters.BinaryDataConverter",
                "is not supported yet",
            ),
            (
                "io.confluent.connect.avro.AvroConverter",
                "is not supported;",
            ),
        ] {
            let error = converter(Role::Value, class, &[]).unwrap_err();
            assert!(error.contains(class) && error.contains(words), "{error}");
        }
        let error = converter(Role::Key, SIMPLE_HEADER_CONVERTER, &[]).unwrap_err();
        assert!(error.contains("headers only"), "{error}");
    }

    #[test]
    fn only_schemas_show_whether_a_column_is_nullable() {
        assert!(Converter::Json { schemas: true }.needs_nullability());
        for converter in [
            Converter::Json { schemas: false },
            Converter::String,
            Converter::Plain,
        ] {
            assert!(!converter.needs_nullability());
        }
    }
}
