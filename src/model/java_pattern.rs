mod class;
mod escape;
mod replacement;
mod scanner;
mod translate;

use std::fmt;

use fancy_regex::Regex;

pub use replacement::{JavaReplacement, ReplacementError};

/// A regular expression with the meaning `java.util.regex.Pattern` gives it.
///
/// Rust's engines read several constructs differently without saying so (`\w` is Unicode,
/// `\h` a hexadecimal digit, `.` matches a carriage return …). The pattern is therefore read
/// by Java's rules and written anew in constructs that mean the same to both; what has no
/// such form is refused, never reinterpreted.
#[derive(Clone)]
pub struct JavaPattern {
    text: String,
    whole: Regex,
    first: Regex,
    groups: usize,
    names: Vec<(String, usize)>,
}

/// Whether letters match their other case, as `Pattern.CASE_INSENSITIVE` makes them: ASCII only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// `a` matches `a`.
    Sensitive,
    /// `a` matches `a` and `A`.
    Insensitive,
}

/// The pattern is not one that Java accepts, or uses something not supported here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (at character {position} of the pattern)")]
pub struct PatternError {
    reason: String,
    position: usize,
}

/// A text on which the pattern needs more steps than are allowed; where Java would go on for
/// minutes or overflow its stack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the pattern '{pattern}' backtracks too much on a text of {length} bytes; make its repetitions unambiguous"
)]
pub struct MatchError {
    pattern: String,
    length: usize,
}

impl JavaPattern {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// When Java would refuse it, or when it uses a construct whose meaning cannot be kept.
    pub fn new(pattern: &str, case: Case) -> Result<Self, PatternError> {
        let translation = translate::translate(pattern, case)?;
        let compile = |regex: &str| {
            Regex::new(regex).map_err(|error| PatternError {
                reason: format!("the pattern cannot be compiled: {error}"),
                position: 1,
            })
        };
        Ok(Self {
            text: pattern.to_owned(),
            whole: compile(&format!(r"\A(?:{})\z", translation.regex))?,
            first: compile(&translation.regex)?,
            groups: translation.groups,
            names: translation.names,
        })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern matches all of `text` (`Matcher.matches`).
    ///
    /// # Errors
    /// When the match needs too many steps.
    pub fn matches(&self, text: &str) -> Result<bool, MatchError> {
        self.whole.is_match(text).map_err(|_| self.too_long(text))
    }

    /// What Kafka's `RegexRouter` makes of `text`: `None` unless the pattern matches all of
    /// it, else `Matcher.replaceFirst`. That searches again, so a pattern whose first find is
    /// shorter than the whole (`a|ab` in `ab`) leaves the rest of the text standing.
    ///
    /// # Errors
    /// When the match needs too many steps.
    pub fn replace_whole(
        &self,
        text: &str,
        by: &JavaReplacement,
    ) -> Result<Option<String>, MatchError> {
        if !self.matches(text)? {
            return Ok(None);
        }
        let found = self.first.captures(text).map_err(|_| self.too_long(text))?;
        let Some((captures, all)) = found.and_then(|captures| {
            let all = captures.get(0)?;
            Some((captures, all))
        }) else {
            return Ok(None);
        };
        let mut replaced = String::with_capacity(text.len() + by.literal_len());
        replaced.push_str(text.get(..all.start()).unwrap_or_default());
        by.expand(&captures, &mut replaced);
        replaced.push_str(text.get(all.end()..).unwrap_or_default());
        Ok(Some(replaced))
    }

    /// How many capturing groups there are (`Matcher.groupCount`).
    fn groups(&self) -> usize {
        self.groups
    }

    /// The number of the group called `name`.
    fn group_named(&self, name: &str) -> Option<usize> {
        let found = self.names.iter().find(|(known, _)| known == name);
        found.map(|(_, number)| *number)
    }

    fn too_long(&self, text: &str) -> MatchError {
        MatchError {
            pattern: self.text.clone(),
            length: text.len(),
        }
    }
}

impl fmt::Debug for JavaPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JavaPattern({:?})", self.text)
    }
}

#[cfg(test)]
mod tests;
