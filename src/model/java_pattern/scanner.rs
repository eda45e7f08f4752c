use super::PatternError;

/// A character of the pattern; one from within `\Q…\E` has no special meaning.
#[derive(Clone, Copy)]
pub(super) struct Symbol {
    pub(super) c: char,
    pub(super) quoted: bool,
    position: usize,
}

/// Resolves `\Q…\E`, as Java does before anything else.
fn unquote(pattern: &str) -> Vec<Symbol> {
    let mut symbols = Vec::with_capacity(pattern.len());
    let mut quoted = false;
    let mut chars = pattern.chars().enumerate().peekable();
    while let Some((index, c)) = chars.next() {
        let symbol = |c, index| Symbol {
            c,
            quoted,
            position: index + 1,
        };
        let next = chars.peek().map(|(_, next)| *next);
        match (c, next) {
            ('\\', Some('E')) if quoted => {
                chars.next();
                quoted = false;
            }
            ('\\', Some('Q')) if !quoted => {
                chars.next();
                quoted = true;
            }
            // A pair is kept together: the second backslash of \\Q begins nothing.
            ('\\', Some(next)) if !quoted => {
                chars.next();
                symbols.extend([symbol(c, index), symbol(next, index + 1)]);
            }
            _ => symbols.push(symbol(c, index)),
        }
    }
    symbols
}

/// Steps through the characters of a pattern.
pub(super) struct Scanner {
    symbols: Vec<Symbol>,
    at: usize,
}

impl Scanner {
    pub(super) fn new(pattern: &str) -> Self {
        Self {
            symbols: unquote(pattern),
            at: 0,
        }
    }

    pub(super) fn peek(&self) -> Option<Symbol> {
        self.symbols.get(self.at).copied()
    }

    /// The character `ahead` of the next, unless it is quoted.
    pub(super) fn special(&self, ahead: usize) -> Option<char> {
        let symbol = self.symbols.get(self.at + ahead)?;
        (!symbol.quoted).then_some(symbol.c)
    }

    pub(super) fn next(&mut self) -> Option<Symbol> {
        let symbol = self.peek()?;
        self.at += 1;
        Some(symbol)
    }

    /// Steps over `c` if it is next and not quoted.
    pub(super) fn eat(&mut self, c: char) -> bool {
        let found = self.special(0) == Some(c);
        if found {
            self.at += 1;
        }
        found
    }

    /// An error at what was read last.
    pub(super) fn error(&self, reason: impl Into<String>) -> PatternError {
        let read = self.symbols.get(self.at.saturating_sub(1));
        PatternError {
            reason: reason.into(),
            position: read.map_or(1, |symbol| symbol.position),
        }
    }

    /// Steps over the characters that are `wanted` and not quoted, `most` at the most.
    pub(super) fn take_while(&mut self, most: usize, wanted: impl Fn(&char) -> bool) -> String {
        let mut taken = String::new();
        while taken.len() < most
            && let Some(c) = self.special(0).filter(&wanted)
        {
            taken.push(c);
            self.at += 1;
        }
        taken
    }

    /// Steps over one character.
    pub(super) fn skip(&mut self) {
        self.at += 1;
    }
}
