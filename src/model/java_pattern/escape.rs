use super::PatternError;
use super::class::{self, Predefined};
use super::scanner::{Scanner, Symbol};
use super::translate::Takes;

/// What an escape stands for.
pub(super) enum Escape {
    Char(char),
    Class(Predefined),
    /// A construct of its own, already in the engine's language.
    Construct(String, Takes),
}

/// Java's `$` and `\Z`: the end, or before a line terminator that ends the text.
pub(super) const END_OR_LAST_TERMINATOR: &str =
    r"(?:\z|(?=(?:\r\n|[\r\x{85}\x{2028}\x{2029}])\z)|(?<!\r)(?=\n\z))";
/// Java's `\R`.
const LINE_BREAK: &str = r"(?:\r\n|[\n\x{B}\x{C}\r\x{85}\x{2028}\x{2029}])";

/// What stands behind a backslash.
pub(super) fn escape(scanner: &mut Scanner, ignore_case: bool) -> Result<Escape, PatternError> {
    let Some(Symbol { c, .. }) = scanner.next() else {
        return Err(
            scanner.error("the pattern ends with a backslash; write \\\\ for a literal one")
        );
    };
    if let Some(predefined) = class::predefined(c) {
        return Ok(Escape::Class(predefined));
    }
    let position = |text: &str| Ok(Escape::Construct(text.to_owned(), Takes::Nothing));
    match c {
        't' => Ok(Escape::Char('\t')),
        'n' => Ok(Escape::Char('\n')),
        'r' => Ok(Escape::Char('\r')),
        'f' => Ok(Escape::Char('\x0C')),
        'a' => Ok(Escape::Char('\x07')),
        'e' => Ok(Escape::Char('\x1B')),
        'x' | 'u' => code_point(scanner, c).map(Escape::Char),
        'p' | 'P' => property(scanner, c == 'P', ignore_case).map(Escape::Class),
        'A' => position(r"\A"),
        'z' => position(r"\z"),
        'Z' => position(END_OR_LAST_TERMINATOR),
        // Unicode before JDK 19, ASCII since.
        'b' | 'B' => Err(scanner.error(format!(
            "\\{c} is not supported: Java's releases differ in its meaning"
        ))),
        'R' => Ok(Escape::Construct(LINE_BREAK.to_owned(), Takes::Something)),
        '0'..='9' | 'k' => {
            Err(scanner.error("back references and octal escapes are not supported"))
        }
        c if c.is_ascii_alphabetic() => Err(scanner.error(format!("\\{c} is not supported"))),
        c => Ok(Escape::Char(c)),
    }
}

/// `\xhh`, `\x{h…h}` or `\uhhhh`, behind the letter.
fn code_point(scanner: &mut Scanner, letter: char) -> Result<char, PatternError> {
    let (digits, complete) = if letter == 'x' && scanner.eat('{') {
        let digits = scanner.take_while(6, char::is_ascii_hexdigit);
        (digits, scanner.eat('}'))
    } else {
        let wanted = if letter == 'x' { 2 } else { 4 };
        let digits = scanner.take_while(wanted, char::is_ascii_hexdigit);
        let complete = digits.len() == wanted;
        (digits, complete)
    };
    let code = u32::from_str_radix(&digits, 16)
        .ok()
        .and_then(char::from_u32);
    code.filter(|_| complete).ok_or_else(|| {
        scanner.error("a character code looks like \\x2D, \\x{2D} or \\u002D, and is no surrogate")
    })
}

/// The name behind `\p` or `\P`: one letter, or more in braces.
fn property(
    scanner: &mut Scanner,
    negated: bool,
    ignore_case: bool,
) -> Result<Predefined, PatternError> {
    let (name, complete) = if scanner.eat('{') {
        let name = scanner.take_while(usize::MAX, |c| *c != '}');
        (name, scanner.eat('}'))
    } else {
        let letter = scanner.next().map(|symbol| symbol.c);
        (letter.map(String::from).unwrap_or_default(), true)
    };
    // Java's releases differ in what these two match when case does not count.
    let unclear = ignore_case && matches!(name.as_str(), "Lower" | "Upper");
    match class::posix(&name) {
        Some(members) if complete && !unclear => Ok(Predefined { members, negated }),
        _ => Err(scanner.error(format!(
            "\\p{{{name}}} is not supported; write the characters as [a-z0-9]"
        ))),
    }
}
