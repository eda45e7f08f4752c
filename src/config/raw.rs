//! The first stage: every key with its text and its origin, nothing understood yet.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::json::{self, MemberValue};
use super::options::{self, Section};
use super::origin::{Layer, Origin};
use super::properties;
use super::provider::Template;
use super::report::Report;

/// One key's value as written. Its text is shown to no one who does not ask for it.
pub(super) struct Entry {
    text: String,
    template: Option<Template>,
    origin: Origin,
    visibility: Visibility,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visibility {
    /// May be quoted in a message.
    Open,
    /// A secret, or something that came from a config provider.
    Hidden,
    /// Already reported as unusable, so that nothing more need be said about it.
    Unusable,
}

/// The keys of one file or of the command line, in order.
pub(super) type Entries = Vec<(String, Entry)>;

/// Every key in force: the worker's, overridden by the connector's, overridden by `--set`.
pub(super) struct RawConfig {
    entries: BTreeMap<String, Entry>,
    connector: Origin,
    has_worker: bool,
}

// === impl Entry ===

impl Entry {
    fn new(key: &str, text: String, origin: Origin) -> Self {
        let visibility = if options::is_secret(key) {
            Visibility::Hidden
        } else {
            Visibility::Open
        };
        Self {
            text,
            template: None,
            origin,
            visibility,
        }
    }

    fn unusable(origin: Origin) -> Self {
        Self {
            text: String::new(),
            template: None,
            origin,
            visibility: Visibility::Unusable,
        }
    }

    /// The value as written, blanks and all.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// What to ask the config providers for once more; absent where none was asked.
    pub(super) fn template(&self) -> Option<&Template> {
        self.template.as_ref()
    }

    /// Replaces the text by what config providers gave.
    pub(super) fn provide(&mut self, template: Template, text: String) {
        self.text = text;
        self.template = Some(template);
        self.visibility = Visibility::Hidden;
    }

    /// Notes that a problem with it has been reported.
    pub(super) fn spoil(&mut self) {
        self.visibility = Visibility::Unusable;
    }

    pub(super) fn is_usable(&self) -> bool {
        self.visibility != Visibility::Unusable
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.visibility != Visibility::Open
    }

    /// The value as a message may show it.
    pub(super) fn shown(&self) -> String {
        if self.is_hidden() {
            "its value (not shown)".to_owned()
        } else {
            format!("{:?}", self.text)
        }
    }
}

/// Shows no text: it can be a secret.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)
    }
}

// === impl RawConfig ===

impl RawConfig {
    /// Lays the inputs over one another. Converters go as a whole, as in Connect
    /// (`Worker.startTask`): a connector that names its own has nothing from the worker's.
    pub(super) fn layered(
        worker: Option<Entries>,
        connector_file: &Path,
        mut connector: Entries,
        set: Entries,
        report: &mut Report,
    ) -> Self {
        let has_worker = worker.is_some();
        let mut worker = worker.unwrap_or_default();
        worker.retain(|(key, entry)| !is_misplaced(key, entry, report));
        for role in options::ROLES {
            let class = format!("{role}.converter");
            let names = |entries: &Entries| entries.iter().any(|(key, _)| *key == class);
            if names(&connector) || names(&set) {
                worker.retain(|(key, _)| !is_below(key, &class));
            } else {
                connector.retain(|(key, entry)| {
                    let idle = is_below(key, &class);
                    if idle && options::find(key, Layer::Connector, None).is_some() {
                        report.warning(
                            entry.origin(),
                            key,
                            "it has no effect here, because the connector does not name the converter",
                            format!("write {class} beside it, or leave it out"),
                        );
                    }
                    !idle
                });
            }
        }
        let entries = worker.into_iter().chain(connector).chain(set).collect();
        let connector = Origin::file(Layer::Connector, &connector_file.to_string_lossy().into());
        Self {
            entries,
            connector,
            has_worker,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub(super) fn iter(&self) -> btree_map::Iter<'_, String, Entry> {
        self.entries.iter()
    }

    pub(super) fn iter_mut(&mut self) -> btree_map::IterMut<'_, String, Entry> {
        self.entries.iter_mut()
    }

    /// The connector's file, where a missing key belongs.
    pub(super) fn connector(&self) -> &Origin {
        &self.connector
    }

    /// Whether a worker's properties were given.
    pub(super) fn has_worker(&self) -> bool {
        self.has_worker
    }
}

fn is_below(key: &str, class: &str) -> bool {
    key.strip_prefix(class)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// Whether a key of the worker's file means something only in a connector's.
fn is_misplaced(key: &str, entry: &Entry, report: &mut Report) -> bool {
    let section = options::find(key, Layer::Worker, None).map(|option| option.section);
    let misplaced = matches!(section, Some(Section::Connector | Section::Router));
    if misplaced {
        report.warning(
            entry.origin(),
            key,
            "it has no effect in a worker's file",
            "move it to the connector's file",
        );
    }
    misplaced
}

// === reading ===

/// Reads a connector's or worker's file: JSON if it is named or begins like it, else
/// `.properties`. `None` when nothing of it can be used.
pub(super) fn read_file(path: &Path, layer: Layer, report: &mut Report) -> Option<Entries> {
    let file: Arc<str> = path.to_string_lossy().into();
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).ok(),
        Err(error) => {
            let what = format!("the file cannot be read ({})", error.kind());
            report.problem(
                &Origin::file(layer, &file),
                "",
                what,
                "check its name and its permissions",
            );
            return None;
        }
    };
    let Some(text) = text else {
        report.problem(
            &Origin::file(layer, &file),
            "",
            "the file is not UTF-8 text",
            "save it as UTF-8",
        );
        return None;
    };
    let is_json = path
        .extension()
        .is_some_and(|extension| extension == "json");
    if is_json || text.trim_start().starts_with('{') {
        read_json(&text, layer, &file, report)
    } else {
        read_properties(&text, layer, &file, report)
    }
}

fn read_json(text: &str, layer: Layer, file: &Arc<str>, report: &mut Report) -> Option<Entries> {
    let document = match json::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let origin = Origin::line(layer, file, error.line());
            report.problem(
                &origin,
                "",
                error.to_string(),
                "correct it there or just before",
            );
            return None;
        }
    };
    for (key, line) in document.strays {
        let origin = Origin::line(layer, file, line);
        report.warning(
            &origin,
            &key,
            "it has no effect beside config",
            "move it into config, or leave it out",
        );
    }
    let mut entries = Entries::new();
    for member in document.members {
        let origin = Origin::line(layer, file, member.line);
        let entry = match member.value {
            MemberValue::Null => continue,
            MemberValue::Text(text) => Entry::new(&member.key, text, origin),
            MemberValue::Nested => {
                let what = "its value is an object or a list";
                report.problem(
                    &origin,
                    &member.key,
                    what,
                    "write a string, a number, true or false",
                );
                Entry::unusable(origin)
            }
        };
        if let Some((_, first)) = entries.iter().find(|(key, _)| *key == member.key) {
            let what = format!("it is written twice, first at {}", first.origin());
            report.problem(entry.origin(), &member.key, what, "leave one of them out");
        } else {
            entries.push((member.key, entry));
        }
    }
    Some(entries)
}

fn read_properties(
    text: &str,
    layer: Layer,
    file: &Arc<str>,
    report: &mut Report,
) -> Option<Entries> {
    let properties = match properties::parse(text) {
        Ok(properties) => properties,
        Err(error) => {
            let origin = Origin::line(layer, file, error.line);
            report.problem(
                &origin,
                "",
                error.to_string(),
                "write \\\\u for a backslash and a u",
            );
            return None;
        }
    };
    let mut entries = Entries::new();
    for property in properties {
        let origin = Origin::line(layer, file, property.line);
        if let Some(index) = entries.iter().position(|(key, _)| *key == property.key) {
            let (_, first) = entries.remove(index);
            let what = format!(
                "it is written twice, first at {}; the last one counts",
                first.origin()
            );
            report.warning(&origin, &property.key, what, "leave one of them out");
        }
        let entry = Entry::new(&property.key, property.value, origin);
        entries.push((property.key, entry));
    }
    Some(entries)
}

/// The variables that stand for a key wherever a process is told its place by its environment.
const VARIABLES: [(&str, &str); 2] = [
    ("OUTBOXD_HTTP_HOST", "outboxd.http.host"),
    ("OUTBOXD_HTTP_PORT", "outboxd.http.port"),
];

/// Reads the environment variables that stand for a key.
pub(super) fn read_variables(environment: &dyn Fn(&str) -> Option<String>) -> Entries {
    let read = |(name, key): (&str, &str)| {
        let entry = Entry::new(key, environment(name)?, Origin::variable(name));
        Some((key.to_owned(), entry))
    };
    VARIABLES.into_iter().filter_map(read).collect()
}

/// Reads the `key=value` arguments of `--set`; the last one of a key counts.
pub(super) fn read_overrides(overrides: &[String], report: &mut Report) -> Entries {
    let mut entries = Entries::new();
    for (argument, index) in overrides.iter().zip(1..) {
        let origin = Origin::set(index);
        match argument.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                let key = key.trim().to_owned();
                let entry = Entry::new(&key, value.to_owned(), origin);
                entries.push((key, entry));
            }
            // Not quoted: it may be a password on its own.
            _ => {
                let what = format!("argument {index} has no key before a =");
                report.problem(&origin, "", what, "write --set key=value");
            }
        }
    }
    entries
}
