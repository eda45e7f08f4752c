use std::io::Write as _;

use super::Schema;

/// What stands before the value when the schema goes with it
/// (`JsonConverter.fromConnectData`, `asJsonSchema`); the rest is [`ENVELOPE_END`].
pub(super) fn envelope_start(schema: &Schema) -> String {
    let mut text = format!(
        r#"{{"schema":{{"type":"{}","optional":{}"#,
        schema.kind.json_name(),
        schema.optional
    );
    if let Some(name) = schema.name {
        text.push_str(&format!(r#","name":"{name}""#));
    }
    if let Some(version) = schema.version {
        text.push_str(&format!(r#","version":{version}"#));
    }
    text.push_str(r#"},"payload":"#);
    text
}

/// What stands behind the value when the schema goes with it.
pub(super) const ENVELOPE_END: &[u8] = b"}";

/// Appends `text` as a JSON string exactly as JsonConverter does, by Jackson's UTF-8 generator:
/// control characters have short escapes or upper-case `\u001F`, characters beyond the basic
/// plane two `\uD83D\uDE00`, and everything else but `"` and `\` stands as it is.
pub(super) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(needs_escape) {
        // The byte found begins a character, so both parts are text.
        let (run, behind) = rest.split_at(at);
        out.extend_from_slice(run.as_bytes());
        let mut chars = behind.chars();
        if let Some(c) = chars.next() {
            push_escaped(out, c);
        }
        rest = chars.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'"');
}

/// Whether a character that begins with this byte is not written as it is.
fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\' || byte >= 0xf0
}

fn push_escaped(out: &mut Vec<u8>, c: char) {
    let short = match c {
        '"' => b'"',
        '\\' => b'\\',
        '\u{8}' => b'b',
        '\t' => b't',
        '\n' => b'n',
        '\u{c}' => b'f',
        '\r' => b'r',
        _ => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a Vec cannot fail.
                let _ = write!(out, "\\u{unit:04X}");
            }
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::convert::Kind;

    fn string(text: &str) -> String {
        let mut out = Vec::new();
        push_string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_is_escaped_as_jackson_does() {
        for (text, expected) in [
            ("", r#""""#),
            ("plain", r#""plain""#),
            (r#"a"b\c/d"#, r#""a\"b\\c/d""#),
            ("\u{8}\t\n\u{c}\r", r#""\b\t\n\f\r""#),
            ("\u{0}\u{b}\u{1b}\u{1f}", r#""\u0000\u000B\u001B\u001F""#),
            (
                "\u{7f}\u{85}\u{2028}é日\u{ffff}",
                "\"\u{7f}\u{85}\u{2028}é日\u{ffff}\"",
            ),
            ("x😀y", r#""x\uD83D\uDE00y""#),
            ("\u{10000}\u{10ffff}", r#""\uD800\uDC00\uDBFF\uDFFF""#),
        ] {
            assert_eq!(string(text), expected);
        }
    }

    #[test]
    fn the_schema_has_connects_member_order() {
        let uuid = Schema {
            kind: Kind::String,
            name: Some("io.debezium.data.Uuid"),
            version: Some(1),
            optional: true,
        };
        assert_eq!(
            envelope_start(&uuid),
            r#"{"schema":{"type":"string","optional":true,"name":"io.debezium.data.Uuid","version":1},"payload":"#
        );
        assert_eq!(
            envelope_start(&Schema::text()),
            r#"{"schema":{"type":"string","optional":false},"payload":"#
        );
    }

    /// Reads a JSON string back, in the plainest way.
    fn read(json: &str) -> Option<String> {
        let mut units = Vec::new();
        let mut chars = json.strip_prefix('"')?.strip_suffix('"')?.chars();
        while let Some(c) = chars.next() {
            if c != '\\' {
                units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
                continue;
            }
            units.push(match chars.next()? {
                'u' => u16::from_str_radix(&chars.by_ref().take(4).collect::<String>(), 16).ok()?,
                'b' => 8,
                't' => 9,
                'n' => 10,
                'f' => 12,
                'r' => 13,
                c @ ('"' | '\\') => u16::try_from(u32::from(c)).ok()?,
                _ => return None,
            });
        }
        String::from_utf16(&units).ok()
    }

    proptest! {
        #[test]
        fn any_text_can_be_read_back(text in any::<String>()) {
            let json = string(&text);
            prop_assert_eq!(read(&json), Some(text));
            prop_assert!(json.bytes().all(|byte| (0x20..0xf0).contains(&byte)));
        }
    }
}
