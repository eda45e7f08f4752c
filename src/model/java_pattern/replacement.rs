use fancy_regex::Captures;

use super::JavaPattern;

/// A replacement string with the meaning `Matcher.replaceFirst` gives it: `$1` and `${name}`
/// stand for groups, a backslash makes the next character literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaReplacement {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Group(usize),
}

/// The replacement is not one that Java accepts with this pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplacementError {
    /// A backslash with nothing behind it.
    #[error("it ends with a backslash; write \\\\ for a literal one")]
    NothingEscaped,
    /// A dollar that begins neither `$1` nor `${name}`.
    #[error("a $ is followed by neither a digit nor {{name}}; write \\$ for a literal one")]
    NoGroup,
    /// `${` without a name of letters and digits, beginning with a letter, and a `}`.
    #[error(
        "${{ is not followed by a group's name (letters and digits, a letter first) and }}; write \\$ for a literal $"
    )]
    MalformedName,
    /// The pattern has no such named group.
    #[error("the pattern has no group named '{0}'; write (?<{0}>…) in it")]
    UnknownName(String),
    /// The pattern has fewer groups.
    #[error("it uses group ${group}, but the pattern has {groups} capturing group(s)")]
    UnknownNumber {
        /// The group asked for.
        group: usize,
        /// How many the pattern has.
        groups: usize,
    },
}

impl JavaReplacement {
    /// Reads a replacement for what `pattern` finds, by the rules of
    /// `Matcher.appendReplacement`: the first digit behind `$` is always part of the group's
    /// number, further ones as long as there is such a group.
    ///
    /// # Errors
    /// When it is malformed, or names a group that the pattern does not have. Java notices
    /// only at the first match.
    pub fn parse(text: &str, pattern: &JavaPattern) -> Result<Self, ReplacementError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(c) = take(&mut rest) {
            match c {
                '\\' => literal.push(take(&mut rest).ok_or(ReplacementError::NothingEscaped)?),
                '$' => {
                    let group = match rest.strip_prefix('{') {
                        Some(name) => {
                            rest = name;
                            named_group(&mut rest, pattern)?
                        }
                        None => numbered_group(&mut rest, pattern)?,
                    };
                    if !literal.is_empty() {
                        parts.push(Part::Literal(std::mem::take(&mut literal)));
                    }
                    parts.push(Part::Group(group));
                }
                c => literal.push(c),
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self { parts })
    }

    /// Appends the replacement for these captures; a group that took no part gives nothing.
    pub(super) fn expand(&self, captures: &Captures<'_, str>, out: &mut String) {
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Group(number) => {
                    if let Some(group) = captures.get(*number) {
                        out.push_str(group.as_str());
                    }
                }
            }
        }
    }

    /// How many bytes of the replacement are literal.
    pub(super) fn literal_len(&self) -> usize {
        let bytes = |part: &Part| match part {
            Part::Literal(text) => text.len(),
            Part::Group(_) => 0,
        };
        self.parts.iter().map(bytes).sum()
    }
}

fn take(rest: &mut &str) -> Option<char> {
    let mut chars = rest.chars();
    let c = chars.next()?;
    *rest = chars.as_str();
    Some(c)
}

fn named_group(rest: &mut &str, pattern: &JavaPattern) -> Result<usize, ReplacementError> {
    let (name, behind) = rest
        .split_once('}')
        .ok_or(ReplacementError::MalformedName)?;
    let well_formed = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric());
    if !well_formed {
        return Err(ReplacementError::MalformedName);
    }
    *rest = behind;
    pattern
        .group_named(name)
        .ok_or_else(|| ReplacementError::UnknownName(name.to_owned()))
}

fn numbered_group(rest: &mut &str, pattern: &JavaPattern) -> Result<usize, ReplacementError> {
    let digit = |rest: &str| {
        let digit = rest.chars().next()?.to_digit(10)?;
        usize::try_from(digit).ok()
    };
    let mut group = digit(rest).ok_or(ReplacementError::NoGroup)?;
    let groups = pattern.groups();
    if group > groups {
        return Err(ReplacementError::UnknownNumber { group, groups });
    }
    take(rest);
    while let Some(next) = digit(rest) {
        let longer = group * 10 + next;
        if longer > groups {
            break;
        }
        group = longer;
        take(rest);
    }
    Ok(group)
}
