use proptest::prelude::*;

use super::*;
use crate::model::TypeOid;

const JSON: Converter = Converter::Json { schemas: false };
const JSON_WITH_SCHEMAS: Converter = Converter::Json { schemas: true };

fn encoder(converter: Converter, type_oid: TypeOid, not_null: bool) -> Encoder {
    converter
        .encoder(&Schema::of_column(type_oid, not_null).unwrap())
        .unwrap()
}

/// The bytes as text, `None` for a null.
fn encoded(encoder: &Encoder, value: Value<'_>) -> Result<Option<String>, ConvertError> {
    let mut arena = b"what another piece left".to_vec();
    let piece = encoder.encode(value, &mut arena)?;
    let bytes = piece.bytes(&arena).map(<[u8]>::to_vec);
    Ok(bytes.map(|bytes| String::from_utf8(bytes).unwrap()))
}

fn text_of(converter: Converter, type_oid: TypeOid, not_null: bool, text: &str) -> String {
    let encoder = encoder(converter, type_oid, not_null);
    encoded(&encoder, Value::Text(text.as_bytes()))
        .unwrap()
        .unwrap()
}

/// Debezium's recordings `seed-*`: three events of jsonb payloads.
#[test]
fn payloads_are_those_of_debezium() {
    for (sent, json) in [
        (
            r#"{"amount": 1250.50, "claimId": "CLM-1001", "currency": "USD"}"#,
            r#""{\"amount\": 1250.50, \"claimId\": \"CLM-1001\", \"currency\": \"USD\"}""#,
        ),
        (
            r#"{"amount": 99, "nested": {"a": true, "b": [1, 2, {"c": null}]}, "claimId": "CLM-1002"}"#,
            r#""{\"amount\": 99, \"nested\": {\"a\": true, \"b\": [1, 2, {\"c\": null}]}, \"claimId\": \"CLM-1002\"}""#,
        ),
        (
            r#"{"claimId": "CLM-1001", "approvedBy": "Zoë ✓"}"#,
            r#""{\"claimId\": \"CLM-1001\", \"approvedBy\": \"Zoë ✓\"}""#,
        ),
    ] {
        for converter in [Converter::Plain, Converter::String] {
            assert_eq!(text_of(converter, TypeOid::JSONB, false, sent), sent);
        }
        assert_eq!(text_of(JSON, TypeOid::JSONB, false, sent), json);
        assert_eq!(
            text_of(JSON_WITH_SCHEMAS, TypeOid::JSONB, false, sent),
            format!(
                r#"{{"schema":{{"type":"string","optional":true,"name":"io.debezium.data.Json","version":1}},"payload":{json}}}"#
            )
        );
    }
}

/// Recordings `key-*-json-schemas`, and the same without schemas.
#[test]
fn keys_are_those_of_debezium() {
    for (type_oid, not_null, sent, schema, json) in [
        (
            TypeOid::TEXT,
            true,
            "CLM-1001",
            r#""type":"string","optional":false"#,
            r#""CLM-1001""#,
        ),
        (
            TypeOid::TEXT,
            false,
            "",
            r#""type":"string","optional":true"#,
            r#""""#,
        ),
        (
            TypeOid::BPCHAR,
            true,
            "abc     ",
            r#""type":"string","optional":false"#,
            r#""abc     ""#,
        ),
        (
            TypeOid::INT2,
            true,
            "7",
            r#""type":"int16","optional":false"#,
            "7",
        ),
        (
            TypeOid::INT4,
            true,
            "-42",
            r#""type":"int32","optional":false"#,
            "-42",
        ),
        (
            TypeOid::INT8,
            true,
            "4711",
            r#""type":"int64","optional":false"#,
            "4711",
        ),
        (
            TypeOid::UUID,
            true,
            "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee",
            r#""type":"string","optional":false,"name":"io.debezium.data.Uuid","version":1"#,
            r#""aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee""#,
        ),
    ] {
        assert_eq!(text_of(JSON, type_oid, not_null, sent), json);
        assert_eq!(
            text_of(JSON_WITH_SCHEMAS, type_oid, not_null, sent),
            format!(r#"{{"schema":{{{schema}}},"payload":{json}}}"#)
        );
        assert_eq!(text_of(Converter::String, type_oid, not_null, sent), sent);
    }
}

/// Recordings `unicode-json` and `text-escapes-json`.
#[test]
fn unusual_text_is_escaped_as_debezium_does() {
    assert_eq!(
        text_of(JSON, TypeOid::TEXT, true, "schlüssel-日本 😀"),
        r#""schlüssel-日本 \uD83D\uDE00""#
    );
    assert_eq!(
        text_of(JSON, TypeOid::JSON, false, r#"{"esc":"\u001b"}"#),
        r#""{\"esc\":\"\\u001b\"}""#
    );
}

/// Recordings `headers-types-simple` and `headers-types-json-no-schemas`.
#[test]
fn headers_are_those_of_debezium() {
    for (type_oid, sent, simple, json) in [
        (TypeOid::INT4, "-5", "-5", "-5"),
        (
            TypeOid::INT8,
            "9007199254740993",
            "9007199254740993",
            "9007199254740993",
        ),
        (TypeOid::BOOL, "t", "true", "true"),
        (TypeOid::BOOL, "f", "false", "false"),
        (TypeOid::VARCHAR, "vc", "vc", r#""vc""#),
        (
            TypeOid::JSONB,
            r#"{"k": [1, 2]}"#,
            r#"{"k": [1, 2]}"#,
            r#""{\"k\": [1, 2]}""#,
        ),
        (TypeOid::BYTEA, r"\x00ff", "AP8=", r#""AP8=""#),
    ] {
        assert_eq!(
            text_of(Converter::SimpleHeader, type_oid, false, sent),
            simple
        );
        assert_eq!(text_of(JSON, type_oid, false, sent), json);
    }
    let context = JSON_WITH_SCHEMAS.encoder(&Schema::text()).unwrap();
    assert_eq!(
        encoded(&context, Value::Text(b"postgresql"))
            .unwrap()
            .as_deref(),
        Some(r#"{"schema":{"type":"string","optional":false},"payload":"postgresql"}"#)
    );
}

/// Recordings `key-null*`, `payload-null*` and `header-null-value`.
#[test]
fn null_is_null_but_for_json() {
    for converter in [Converter::Plain, Converter::String, Converter::SimpleHeader] {
        let encoder = encoder(converter, TypeOid::TEXT, false);
        assert_eq!(encoded(&encoder, Value::Null), Ok(None));
        assert_eq!(encoded(&encoder, Value::Text(b"")), Ok(Some(String::new())));
    }
    let null =
        |converter, not_null| encoded(&encoder(converter, TypeOid::TEXT, not_null), Value::Null);
    assert_eq!(null(JSON, false), Ok(Some("null".to_owned())));
    assert_eq!(
        null(JSON_WITH_SCHEMAS, false),
        Ok(Some(
            r#"{"schema":{"type":"string","optional":true},"payload":null}"#.to_owned()
        ))
    );
    assert_eq!(
        null(JSON_WITH_SCHEMAS, true),
        Err(ConvertError::NullInRequired)
    );
}

#[test]
fn text_is_pointed_to_and_not_copied() {
    let mut arena = Vec::new();
    let payload = br#"{"a": 1}"#;
    let encoder = encoder(Converter::String, TypeOid::JSONB, false);
    let piece = encoder.encode(Value::Text(payload), &mut arena).unwrap();
    assert!(matches!(piece, Piece::Borrowed(bytes) if std::ptr::eq(bytes, payload.as_slice())));
    assert!(arena.is_empty());
}

#[test]
fn bytea_becomes_its_bytes_or_base64() {
    let encoder = encoder(Converter::Plain, TypeOid::BYTEA, false);
    let mut arena = vec![b'!'];
    let piece = encoder
        .encode(Value::Text(br"\x0001feff"), &mut arena)
        .unwrap();
    assert_eq!(piece.bytes(&arena), Some([0, 1, 0xfe, 0xff].as_slice()));
    // Recording `payload-bytea-json`.
    assert_eq!(
        text_of(
            JSON_WITH_SCHEMAS,
            TypeOid::BYTEA,
            false,
            r"\x00ff10deadbeef"
        ),
        r#"{"schema":{"type":"bytes","optional":true},"payload":"AP8Q3q2+7w=="}"#
    );
    assert_eq!(text_of(JSON, TypeOid::BYTEA, false, r"\x"), r#""""#);
}

#[test]
fn values_not_in_their_types_form_are_errors() {
    let error = |converter, type_oid, value| {
        encoded(&encoder(converter, type_oid, false), value).unwrap_err()
    };
    assert_eq!(
        error(JSON, TypeOid::BOOL, Value::Text(b"yes")),
        ConvertError::NotBoolean
    );
    assert_eq!(
        error(JSON, TypeOid::TEXT, Value::Text(b"\xff")),
        ConvertError::NotUtf8
    );
    assert_eq!(
        error(Converter::String, TypeOid::TEXT, Value::Unchanged),
        ConvertError::Unchanged
    );
    for bytea in [r"\000\377", r"\x0", r"\xzz", "x00", ""] {
        let value = Value::Text(bytea.as_bytes());
        assert_eq!(
            error(Converter::Plain, TypeOid::BYTEA, value),
            ConvertError::NotHex,
            "{bytea}"
        );
    }
}

#[test]
fn bytea_as_a_string_is_refused_at_once() {
    let bytea = Schema::of_column(TypeOid::BYTEA, false).unwrap();
    let error = Converter::String.encoder(&bytea).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Fatal);
    assert!(error.to_string().contains("converter for bytes"), "{error}");
}

proptest! {
    #[test]
    fn base64_of_any_bytea_decodes_to_it(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!(r"\x{hex}");
        let base64 = text_of(Converter::SimpleHeader, TypeOid::BYTEA, true, &text);
        prop_assert_eq!(BASE64.decode(base64).unwrap(), bytes);
    }
}
