use std::fmt::Write as _;

use super::PatternError;
use super::escape::{Escape, escape};
use super::scanner::Scanner;

/// What the dot leaves out: Java's line terminators (`Pattern`, "Line terminators").
pub(super) const LINE_TERMINATORS: &str = r"\n\r\x{85}\x{2028}\x{2029}";

/// The members of a predefined class, and whether the class is all characters but these.
pub(super) struct Predefined {
    pub(super) members: &'static str,
    pub(super) negated: bool,
}

impl Predefined {
    /// The class as one item of a bracketed class, or a class of its own.
    pub(super) fn to_class(&self) -> String {
        let not = if self.negated { "^" } else { "" };
        format!("[{not}{}]", self.members)
    }
}

/// `\d`, `\W` … by the letter behind the backslash (`Pattern`, "Predefined character classes").
pub(super) fn predefined(letter: char) -> Option<Predefined> {
    let members = match letter.to_ascii_lowercase() {
        'd' => "0-9",
        'h' => r" \t\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}",
        's' => r" \t\n\x{B}\x{C}\r",
        'v' => r"\n\x{B}\x{C}\r\x{85}\x{2028}\x{2029}",
        'w' => "0-9A-Za-z_",
        _ => return None,
    };
    Some(Predefined {
        members,
        negated: letter.is_ascii_uppercase(),
    })
}

/// The members of `\p{name}` for the POSIX names, which are ASCII in Java.
pub(super) fn posix(name: &str) -> Option<&'static str> {
    Some(match name {
        "ASCII" => r"\x{0}-\x{7F}",
        "Alnum" => "0-9A-Za-z",
        "Alpha" => "A-Za-z",
        "Blank" => r" \t",
        "Cntrl" => r"\x{0}-\x{1F}\x{7F}",
        "Digit" => "0-9",
        "Graph" => r"\x{21}-\x{7E}",
        "Lower" => "a-z",
        "Print" => r"\x{20}-\x{7E}",
        "Punct" => r"\x{21}-\x{2F}\x{3A}-\x{40}\x{5B}-\x{60}\x{7B}-\x{7E}",
        "Space" => r" \t\n\x{B}\x{C}\r",
        "Upper" => "A-Z",
        "XDigit" => "0-9A-Fa-f",
        _ => return None,
    })
}

/// Appends a character in a form that is literal everywhere, in a class and outside.
pub(super) fn push_literal(regex: &mut String, c: char) {
    if c.is_ascii_alphanumeric() {
        regex.push(c);
    } else {
        // Writing to a String cannot fail.
        let _ = write!(regex, r"\x{{{:X}}}", u32::from(c));
    }
}

/// Appends the range as items of a bracketed class, with the other case of its ASCII letters
/// when case does not count.
pub(super) fn push_range(regex: &mut String, first: char, last: char, ignore_case: bool) {
    let mut push = |first: char, last: char| {
        push_literal(regex, first);
        if first != last {
            regex.push('-');
            push_literal(regex, last);
        }
    };
    push(first, last);
    if ignore_case {
        for letters in ['a'..='z', 'A'..='Z'] {
            let (from, to) = (first.max(*letters.start()), last.min(*letters.end()));
            if from <= to {
                push(swap_case(from), swap_case(to));
            }
        }
    }
}

fn swap_case(letter: char) -> char {
    if letter.is_ascii_lowercase() {
        letter.to_ascii_uppercase()
    } else {
        letter.to_ascii_lowercase()
    }
}

/// A class, behind its `[`, in the engine's language.
pub(super) fn bracketed(scanner: &mut Scanner, ignore_case: bool) -> Result<String, PatternError> {
    let mut items = String::from(if scanner.eat('^') { "[^" } else { "[" });
    let empty = items.len();
    while items.len() == empty || !scanner.eat(']') {
        if scanner.special(0) == Some('&') && scanner.special(1) == Some('&') {
            return Err(scanner.error(
                "the intersection && of classes is not supported; write \\& for a literal one",
            ));
        }
        let Some(first) = member(scanner, ignore_case, &mut items)? else {
            continue;
        };
        let is_range =
            scanner.special(0) == Some('-') && scanner.special(1).is_none_or(|c| c != ']');
        let last = if is_range {
            scanner.skip();
            match member(scanner, ignore_case, &mut items)? {
                Some(last) if last >= first => last,
                _ => {
                    return Err(
                        scanner.error("a range's ends are two characters, the lower one first")
                    );
                }
            }
        } else {
            first
        };
        push_range(&mut items, first, last, ignore_case);
    }
    items.push(']');
    Ok(items)
}

/// The next member: a character, or `None` when it was a class, now part of `items`.
fn member(
    scanner: &mut Scanner,
    ignore_case: bool,
    items: &mut String,
) -> Result<Option<char>, PatternError> {
    let Some(symbol) = scanner.next() else {
        return Err(scanner.error("a class is not closed; write \\[ for a literal bracket"));
    };
    match symbol.c {
        c if symbol.quoted => Ok(Some(c)),
        '[' => Err(scanner
            .error("a class within a class is not supported; write \\[ for a literal bracket")),
        // Only the first member can be one; readers disagree about what it means there.
        ']' => Err(scanner.error("a class is empty; write \\] for a literal bracket")),
        '\\' => match escape(scanner, ignore_case)? {
            Escape::Char(c) => Ok(Some(c)),
            Escape::Class(predefined) => {
                items.push_str(&predefined.to_class());
                Ok(None)
            }
            Escape::Construct(..) => {
                Err(scanner.error("this escape has no meaning within a class"))
            }
        },
        c => Ok(Some(c)),
    }
}
