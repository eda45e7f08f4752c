//! Reads `.properties` text by the rules of `java.util.Properties.load`, keeping the line each
//! property begins on.

use std::str::Chars;

/// One property and the line it begins on, counted from 1.
#[derive(PartialEq, Eq)]
pub struct Property {
    /// The key, its escapes resolved.
    pub key: String,
    /// The value, its escapes resolved.
    pub value: String,
    /// The line it begins on.
    pub line: usize,
}

/// Shows no value: it can be a secret.
impl std::fmt::Debug for Property {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (line {})", self.key, self.line)
    }
}

/// A `\u` escape that Java would refuse, or that makes no character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("\\u is not followed by the four hexadecimal digits of a character")]
pub struct MalformedEscape {
    /// The line on which the property begins.
    pub line: usize,
}

/// All properties in order, duplicates included; in Java the last one counts.
///
/// # Errors
/// At a malformed `\u` escape, as in Java, or at one that makes half a character.
pub fn parse(text: &str) -> Result<Vec<Property>, MalformedEscape> {
    logical_lines(text)
        .into_iter()
        .map(|(line, content)| {
            let (key, value) = split(&content);
            let malformed = || MalformedEscape { line };
            Ok(Property {
                key: unescape(key).ok_or_else(malformed)?,
                value: unescape(value).ok_or_else(malformed)?,
                line,
            })
        })
        .collect()
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c')
}

/// Lines without comments and blank ones, each joined with those it is continued on by a final
/// backslash; still escaped. (`Properties.LineReader`.)
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, natural) in natural_lines(text).enumerate() {
        let content = natural.trim_start_matches(is_blank);
        let (first, mut logical) = match open.take() {
            // An empty start stays a new line: what follows it may be a comment.
            Some((first, logical)) if !logical.is_empty() => (first, logical),
            _ if content.is_empty() || content.starts_with(['#', '!']) => continue,
            _ => (index + 1, String::new()),
        };
        let backslashes = content
            .bytes()
            .rev()
            .take_while(|&byte| byte == b'\\')
            .count();
        let continued = backslashes % 2 == 1;
        logical.push_str(if continued {
            content.strip_suffix('\\').unwrap_or(content)
        } else {
            content
        });
        if continued {
            open = Some((first, logical));
        } else {
            lines.push((first, logical));
        }
    }
    lines.extend(open.filter(|(_, logical)| !logical.is_empty()));
    lines
}

/// Lines ended by LF, CR or CR LF.
fn natural_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let current = rest?;
        let Some((line, after)) = current.split_once(['\n', '\r']) else {
            return rest.take();
        };
        let ended_by_cr = current.as_bytes().get(line.len()) == Some(&b'\r');
        rest = Some(if ended_by_cr {
            after.strip_prefix('\n').unwrap_or(after)
        } else {
            after
        });
        Some(line)
    })
}

/// Splits at the first unescaped `=`, `:` or blank; blanks around one `=` or `:` belong to
/// neither side.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|c: char| {
        let ends = !escaped && (matches!(c, '=' | ':') || is_blank(c));
        escaped = c == '\\' && !escaped;
        ends
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_blank);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, value.trim_start_matches(is_blank))
}

/// Resolves escapes; an unknown one is the character itself. Works in UTF-16 as Java does,
/// where two `\u` may make one character.
fn unescape(text: &str) -> Option<String> {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\x0c',
                Some('u') => {
                    units.push(hexadecimal(&mut chars)?);
                    continue;
                }
                Some(other) => other,
                None => break,
            },
            plain => plain,
        };
        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16(&units).ok()
}

fn hexadecimal(chars: &mut Chars<'_>) -> Option<u16> {
    (0..4).try_fold(0, |unit, _| {
        let digit = u16::try_from(chars.next()?.to_digit(16)?).ok()?;
        Some(unit << 4 | digit)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Vec<(String, String, usize)> {
        parse(text)
            .unwrap()
            .into_iter()
            .map(|p| (p.key, p.value, p.line))
            .collect()
    }

    #[test]
    fn follows_java_and_keeps_line_numbers() {
        for (text, key, value, line) in [
            ("a=1", "a", "1", 1),
            ("# c\n! c\r\n\r  a : 1 ", "a", "1 ", 4),
            ("a 1", "a", "1", 1),
            ("a\t=\t=1", "a", "=1", 1),
            ("a", "a", "", 1),
            ("a=", "a", "", 1),
            ("=1", "", "1", 1),
            ("\n\na=1\\\n   2\\\r\n3", "a", "123", 3),
            ("a=1\\\\", "a", "1\\", 1),
            ("a=1\\", "a", "1", 1),
            ("a\\=b\\:c\\ d=1", "a=b:c d", "1", 1),
            (r"a=\t\n\r\f\q\u00e4\\", "a", "\t\n\r\x0cqä\\", 1),
            (r"a=\ud83d\ude00 ✓", "a", "😀 ✓", 1),
            ("a=x\\\n# no comment", "a", "x# no comment", 1),
            ("a=$\\{routedByValue}", "a", "${routedByValue}", 1),
        ] {
            assert_eq!(
                read(text),
                [(key.to_owned(), value.to_owned(), line)],
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_malformed_unicode_escape_names_its_line() {
        for text in ["\na=\\u12", "\na=\\u12g4", "\na=\\ud83d", "\n\\u=1"] {
            assert_eq!(parse(text), Err(MalformedEscape { line: 2 }), "{text:?}");
        }
    }

    /// The same by another implementation; without lines, which it does not keep.
    fn oracle(text: &str) -> Option<Vec<(String, String, usize)>> {
        let mut properties = Vec::new();
        java_properties::PropertiesIter::new(text.as_bytes())
            .read_into(|key, value| properties.push((key, value)))
            .ok()?;
        Some(
            properties
                .into_iter()
                .map(|(key, value)| (key, value, 0))
                .collect(),
        )
    }

    proptest! {
        // Kept out: where the oracle differs from Java. It drops a property that ends with the
        // file in a backslash, refuses a malformed \u in a comment, and continues a comment
        // that follows a line of nothing but a backslash.
        #[test]
        fn reads_as_the_oracle_does(text in r"([ab=: \\#!\n\r\ttn0]|\\u0041){0,30}") {
            let text = text + "\nz=z";
            prop_assume!(!natural_lines(&text).any(|line| line.trim_start() == "\\"));
            let ours = parse(&text).ok().map(|all| all.into_iter().map(|p| (p.key, p.value, 0)).collect());
            prop_assert_eq!(ours, oracle(&text));
        }
    }
}
