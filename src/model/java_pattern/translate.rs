use super::class;
use super::escape::{END_OR_LAST_TERMINATOR, Escape, escape};
use super::scanner::{Scanner, Symbol};
use super::{Case, PatternError};

/// Deeper nesting than this is refused, so that reading a pattern cannot exhaust the stack.
const MAX_DEPTH: usize = 50;

/// A pattern in the engine's language, without any flag or construct that the two read
/// differently.
pub(super) struct Translation {
    pub(super) regex: String,
    /// Number of capturing groups, named ones included.
    pub(super) groups: usize,
    /// Names of groups and their numbers.
    pub(super) names: Vec<(String, usize)>,
}

/// Reads `pattern` by the rules of `java.util.regex.Pattern` and writes it anew.
pub(super) fn translate(pattern: &str, case: Case) -> Result<Translation, PatternError> {
    let mut reader = Reader {
        scanner: Scanner::new(pattern),
        depth: 0,
        ignore_case: case == Case::Insensitive,
        dot_all: false,
        out: Translation {
            regex: String::with_capacity(pattern.len() * 2),
            groups: 0,
            names: Vec::new(),
        },
    };
    reader.alternatives()?;
    if reader.scanner.peek().is_some() {
        return Err(reader.scanner.error("there is a ) without its ("));
    }
    Ok(reader.out)
}

/// How much text a part of the pattern takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// It matches a position and cannot be repeated.
    Nothing,
    /// It can match the empty text. Repeated, Java counts and captures empty rounds in ways of
    /// its own.
    Perhaps,
    Something,
}

struct Quantifier {
    text: String,
    /// Whether the part may be left out.
    none_will_do: bool,
}

struct Reader {
    scanner: Scanner,
    depth: usize,
    ignore_case: bool,
    dot_all: bool,
    out: Translation,
}

impl Reader {
    /// What stands between parentheses, and whether it can match the empty text.
    fn alternatives(&mut self) -> Result<bool, PatternError> {
        let mut can_be_empty = false;
        loop {
            let mut all_can_be_empty = true;
            while let Some(symbol) = self.scanner.peek()
                && (symbol.quoted || !matches!(symbol.c, '|' | ')'))
            {
                self.scanner.skip();
                all_can_be_empty &= self.piece(symbol)?;
            }
            can_be_empty |= all_can_be_empty;
            if !self.scanner.eat('|') {
                return Ok(can_be_empty);
            }
            self.out.regex.push('|');
        }
    }

    /// A part with its quantifier, and whether it can match the empty text.
    fn piece(&mut self, symbol: Symbol) -> Result<bool, PatternError> {
        let start = self.out.regex.len();
        let groups = self.out.groups;
        let takes = self.atom(symbol)?;
        let Some(quantifier) = self.quantifier()? else {
            return Ok(takes != Takes::Something);
        };
        match takes {
            Takes::Nothing => {
                return Err(self
                    .scanner
                    .error("a quantifier follows something that cannot be repeated"));
            }
            Takes::Perhaps if quantifier.text != "?" => {
                return Err(self
                    .scanner
                    .error("what can match the empty text cannot be repeated"));
            }
            Takes::Perhaps | Takes::Something => {}
        }
        if self.scanner.eat('+') {
            // Possessive: no way back into the repetition, nor into any of its rounds.
            self.no_capture_since(groups)?;
            self.out.regex.insert_str(start, "(?>(?>");
            self.out.regex.push(')');
            self.out.regex.push_str(&quantifier.text);
            self.out.regex.push(')');
        } else {
            self.out.regex.push_str(&quantifier.text);
            if self.scanner.eat('?') {
                self.out.regex.push('?');
            }
        }
        Ok(takes == Takes::Perhaps || quantifier.none_will_do)
    }

    /// `?`, `*`, `+` or `{n,m}`, if one is next.
    fn quantifier(&mut self) -> Result<Option<Quantifier>, PatternError> {
        let (text, none_will_do) = match self.scanner.special(0) {
            Some(c @ ('?' | '*' | '+')) => {
                self.scanner.skip();
                (c.to_string(), c != '+')
            }
            Some('{') => {
                self.scanner.skip();
                let least = self.scanner.take_while(usize::MAX, char::is_ascii_digit);
                let most = self
                    .scanner
                    .eat(',')
                    .then(|| self.scanner.take_while(usize::MAX, char::is_ascii_digit));
                if least.is_empty() || !self.scanner.eat('}') {
                    return Err(self.scanner.error(
                        "a repetition looks like {2}, {2,} or {2,5}; write \\{ for a literal brace",
                    ));
                }
                let most = most.map(|most| format!(",{most}")).unwrap_or_default();
                (
                    format!("{{{least}{most}}}"),
                    least.bytes().all(|digit| digit == b'0'),
                )
            }
            _ => return Ok(None),
        };
        Ok(Some(Quantifier { text, none_will_do }))
    }

    fn atom(&mut self, symbol: Symbol) -> Result<Takes, PatternError> {
        if symbol.quoted {
            self.literal(symbol.c);
            return Ok(Takes::Something);
        }
        match symbol.c {
            '(' => return self.group(),
            '[' => {
                let class = class::bracketed(&mut self.scanner, self.ignore_case)?;
                self.out.regex.push_str(&class);
            }
            '\\' => match escape(&mut self.scanner, self.ignore_case)? {
                Escape::Char(c) => self.literal(c),
                Escape::Class(predefined) => self.out.regex.push_str(&predefined.to_class()),
                Escape::Construct(text, takes) => {
                    self.out.regex.push_str(&text);
                    return Ok(takes);
                }
            },
            '.' if self.dot_all => self.out.regex.push_str("(?s:.)"),
            '.' => {
                let not_a_terminator = format!("[^{}]", class::LINE_TERMINATORS);
                self.out.regex.push_str(&not_a_terminator);
            }
            '^' => {
                self.out.regex.push_str(r"\A");
                return Ok(Takes::Nothing);
            }
            '$' => {
                self.out.regex.push_str(END_OR_LAST_TERMINATOR);
                return Ok(Takes::Nothing);
            }
            '*' | '+' | '?' => {
                return Err(self.scanner.error(format!(
                    "there is nothing for {0} to repeat; write \\{0} for a literal one",
                    symbol.c
                )));
            }
            '{' => {
                return Err(self
                    .scanner
                    .error("there is nothing for { to repeat; write \\{ for a literal one"));
            }
            c => self.literal(c),
        }
        Ok(Takes::Something)
    }

    fn literal(&mut self, c: char) {
        if self.ignore_case && c.is_ascii_alphabetic() {
            self.out.regex.push('[');
            class::push_range(&mut self.out.regex, c, c, true);
            self.out.regex.push(']');
        } else {
            class::push_literal(&mut self.out.regex, c);
        }
    }

    // === Groups ===

    fn group(&mut self) -> Result<Takes, PatternError> {
        let flags = (self.ignore_case, self.dot_all);
        let groups = self.out.groups;
        let mut looks_around = false;
        let mut captures_leak = false;
        if self.scanner.eat('?') {
            match (self.scanner.special(0), self.scanner.special(1)) {
                (Some('<'), Some('=' | '!')) => {
                    return Err(self.scanner.error("look-behind is not supported"));
                }
                (Some('<'), _) => {
                    self.scanner.skip();
                    self.group_name()?;
                    self.out.regex.push('(');
                }
                (Some(c @ ('=' | '!')), _) => {
                    self.scanner.skip();
                    self.out
                        .regex
                        .push_str(if c == '=' { "(?=" } else { "(?!" });
                    looks_around = true;
                    captures_leak = true;
                }
                (Some('>'), _) => {
                    self.scanner.skip();
                    self.out.regex.push_str("(?>");
                    captures_leak = true;
                }
                _ => {
                    self.flags()?;
                    if self.scanner.eat(')') {
                        // (?i): from here to the end of the enclosing group.
                        return Ok(Takes::Nothing);
                    }
                    self.scanner.skip();
                    self.out.regex.push_str("(?:");
                }
            }
        } else {
            self.out.groups += 1;
            self.out.regex.push('(');
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self
                .scanner
                .error(format!("groups are nested more than {MAX_DEPTH} deep")));
        }
        let can_be_empty = self.alternatives()?;
        self.depth -= 1;
        if !self.scanner.eat(')') {
            return Err(self
                .scanner
                .error("a group is not closed; write \\( for a literal parenthesis"));
        }
        if captures_leak {
            self.no_capture_since(groups)?;
        }
        (self.ignore_case, self.dot_all) = flags;
        self.out.regex.push(')');
        Ok(match (looks_around, can_be_empty) {
            (true, _) => Takes::Nothing,
            (false, true) => Takes::Perhaps,
            (false, false) => Takes::Something,
        })
    }

    /// Refuses capturing groups opened since there were `groups`. In look-around, atomic groups
    /// and possessive repetitions, Java keeps what they captured even where the match then
    /// takes another way.
    fn no_capture_since(&self, groups: usize) -> Result<(), PatternError> {
        if self.out.groups == groups {
            return Ok(());
        }
        Err(self.scanner.error(
            "a capturing group within look-ahead, an atomic group or a possessive repetition is not supported; write (?:…)",
        ))
    }

    /// The name and the `>` behind it.
    fn group_name(&mut self) -> Result<(), PatternError> {
        let name = self
            .scanner
            .take_while(usize::MAX, char::is_ascii_alphanumeric);
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !self.scanner.eat('>') {
            return Err(self
                .scanner
                .error("a group's name has letters and digits, a letter first: (?<name>…)"));
        }
        if self.out.names.iter().any(|(known, _)| *known == name) {
            return Err(self
                .scanner
                .error(format!("there are two groups named '{name}'")));
        }
        self.out.groups += 1;
        self.out.names.push((name, self.out.groups));
        Ok(())
    }

    /// Flags of `(?i-s)` or `(?i-s:…)`, up to but not including the `)` or `:`.
    fn flags(&mut self) -> Result<(), PatternError> {
        let mut on = true;
        loop {
            match self.scanner.special(0) {
                Some('i') => self.ignore_case = on,
                Some('s') => self.dot_all = on,
                Some('-') if on => on = false,
                Some(')' | ':') => return Ok(()),
                Some(c @ ('d' | 'm' | 'u' | 'x' | 'U')) => {
                    return Err(self
                        .scanner
                        .error(format!("the flag (?{c}) is not supported")));
                }
                _ => return Err(self.scanner.error("(? begins no group that Java knows")),
            }
            self.scanner.skip();
        }
    }
}
