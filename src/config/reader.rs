use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::options;
use super::origin::{Layer, Origin};
use super::provider::Template;
use super::raw::{Entry, RawConfig};
use super::report::Report;

/// Reads typed values out of a [`RawConfig`], with the defaults of the table of options, and
/// reports what cannot be read. `None` always means that this has been reported or that the key
/// is absent without a default.
pub(super) struct Reader<'a> {
    raw: &'a RawConfig,
    report: &'a mut Report,
}

impl<'a> Reader<'a> {
    pub(super) fn new(raw: &'a RawConfig, report: &'a mut Report) -> Self {
        Self { raw, report }
    }

    pub(super) fn raw(&self) -> &'a RawConfig {
        self.raw
    }

    /// What is written, without blanks around it, as Kafka's `ConfigDef` reads a string.
    pub(super) fn written(&self, key: &str) -> Option<&'a str> {
        self.usable(key).map(|entry| entry.text().trim())
    }

    /// What is written and not blank, or else the default.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        let default = || {
            let option = options::find(key, Layer::Set, None)?;
            (!option.default.is_empty()).then_some(option.default)
        };
        match self.raw.get(key) {
            Some(entry) if !entry.is_usable() => None,
            Some(_) => self
                .written(key)
                .filter(|text| !text.is_empty())
                .or_else(default),
            None => default(),
        }
    }

    /// What is written, which must not be blank.
    pub(super) fn required(&mut self, key: &str, remedy: &str) -> Option<&'a str> {
        let written = self.written(key).filter(|text| !text.is_empty());
        if written.is_none() && self.may_be_absent(key) {
            self.problem(key, "it is required", remedy);
        }
        written
    }

    /// What is written exactly, blanks and all, as for a password.
    pub(super) fn exact(&self, key: &str) -> Option<&'a str> {
        self.usable(key).map(Entry::text)
    }

    /// Where the value comes from, if from config providers.
    pub(super) fn template(&self, key: &str) -> Option<&'a Template> {
        self.usable(key).and_then(Entry::template)
    }

    /// Whether nothing has been reported about the key yet.
    pub(super) fn may_be_absent(&self, key: &str) -> bool {
        self.raw.get(key).is_none_or(Entry::is_usable)
    }

    /// Whether the value is not to be shown, or not to be used at all.
    pub(super) fn is_hidden(&self, key: &str) -> bool {
        self.raw.get(key).is_some_and(Entry::is_hidden)
    }

    /// A value that `parse` makes of the text.
    pub(super) fn parsed<T, E: Display>(
        &mut self,
        key: &str,
        remedy: &str,
        parse: impl FnOnce(&'a str) -> Result<T, E>,
    ) -> Option<T> {
        match parse(self.text(key)?) {
            Ok(value) => Some(value),
            Err(error) => {
                let reason = format!("{} cannot be used: {error}", self.shown(key));
                self.unusable(key, &reason, remedy);
                None
            }
        }
    }

    /// Reports why a value was not accepted. The reason may quote it, so it stays out where the
    /// value is not to be shown.
    pub(super) fn unusable(&mut self, key: &str, reason: &dyn Display, remedy: &str) {
        let what = if self.is_hidden(key) {
            format!("{} cannot be used", self.shown(key))
        } else {
            reason.to_string()
        };
        self.problem(key, what, remedy);
    }

    /// One of some words, in any case. A word can be known and refused, with what to do instead.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &str,
        words: &[(&str, Result<T, &str>)],
    ) -> Option<T> {
        let text = self.text(key)?;
        match words
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(text))
        {
            Some((_, Ok(value))) => Some(*value),
            Some((_, Err(instead))) => {
                let what = format!("{} is not supported by this version", self.shown(key));
                self.problem(key, what, *instead);
                None
            }
            None => {
                let possible: Vec<&str> = words
                    .iter()
                    .filter(|(_, value)| value.is_ok())
                    .map(|(word, _)| *word)
                    .collect();
                let what = format!("{} is not one of the possible values", self.shown(key));
                self.problem(key, what, format!("write {}", possible.join(", ")));
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, key: &str) -> Option<bool> {
        self.choice(key, &[("true", Ok(true)), ("false", Ok(false))])
    }

    pub(super) fn number(&mut self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let number = self
            .text(key)?
            .parse()
            .ok()
            .filter(|number| range.contains(number));
        if number.is_none() {
            let what = format!("{} is not a number that can be used", self.shown(key));
            self.problem(
                key,
                what,
                format!(
                    "write a whole number from {} to {}",
                    range.start(),
                    range.end()
                ),
            );
        }
        number
    }

    pub(super) fn milliseconds(&mut self, key: &str, least: u64) -> Option<Duration> {
        /// Java's largest `int`; 24 days.
        const MOST: u64 = 2_147_483_647;
        self.number(key, least..=MOST).map(Duration::from_millis)
    }

    /// The value as a message may show it.
    pub(super) fn shown(&self, key: &str) -> String {
        self.raw
            .get(key)
            .map_or_else(|| "the default".to_owned(), Entry::shown)
    }

    /// Where the key is written, or else the connector's file.
    fn origin(&self, key: &str) -> &'a Origin {
        self.raw
            .get(key)
            .map_or_else(|| self.raw.connector(), Entry::origin)
    }

    /// Reports a problem where the key is written, or else in the connector's file.
    pub(super) fn problem(
        &mut self,
        key: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let origin = self.origin(key);
        self.report.problem(origin, key, what, remedy);
    }

    pub(super) fn warning(
        &mut self,
        key: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let origin = self.origin(key);
        self.report.warning(origin, key, what, remedy);
    }

    fn usable(&self, key: &str) -> Option<&'a Entry> {
        self.raw.get(key).filter(|entry| entry.is_usable())
    }
}
