//! Config providers: `${provider:path:key}` inside a value, as Connect's `ConfigTransformer`
//! reads it. `${routedByValue}`, which has no colon, is the router's and stays.
//!
//! The three that Kafka brings are always there under their usual names. What they give is taken
//! for a secret. Unlike in Connect, a name that is no provider is an error: a literal
//! `${vault:…}` is never the password that was meant.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::properties;
use super::raw::RawConfig;
use super::report::Report;

/// Looks a variable of the environment up.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Why a variable has no value. Names the place, never what was found there.
#[derive(Debug, thiserror::Error)]
enum ProviderError {
    #[error("there is no config provider {provider:?}")]
    UnknownProvider { provider: String },
    #[error("a ${{{provider}:…}} variable has no key")]
    NoKey { provider: String },
    #[error("the file {} cannot be read ({})", .path.display(), .source.kind())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("line {line} of the file {} has a malformed \\u escape", .path.display())]
    Malformed { path: PathBuf, line: usize },
    #[error("the file {} has no key {key:?}", .path.display())]
    KeyMissing { path: PathBuf, key: String },
    #[error("{key:?} is not the name of a file in {}", .path.display())]
    NotInside { path: PathBuf, key: String },
    #[error("the environment variable {name} is not set")]
    VariableMissing { name: String },
}

impl ProviderError {
    fn remedy(&self) -> &'static str {
        match self {
            Self::UnknownProvider { .. } => {
                "write ${file:/path/of.properties:key}, ${dir:/path:file} or ${env:NAME}"
            }
            Self::NoKey { .. } => "write what is to be looked up behind the last colon",
            Self::Unreadable { .. } => "create it, or let the user that outboxd runs as read it",
            Self::Malformed { .. } => "write \\\\ for a backslash there",
            Self::KeyMissing { .. } => "add the key to the file, or correct its name here",
            Self::NotInside { .. } => "write a file name without folders",
            Self::VariableMissing { .. } => "set it for the process, or correct its name here",
        }
    }
}

/// A text with variables in it, to be read as often as wanted. What the environment gave stays,
/// since it cannot change while the process runs; files are read again each time.
#[derive(Debug, Clone)]
pub(super) struct Template(Vec<Part>);

#[derive(Clone)]
enum Part {
    Text(String),
    /// A key of a properties file.
    Property {
        file: PathBuf,
        key: String,
    },
    /// A file in a folder.
    File {
        folder: PathBuf,
        name: String,
    },
}

/// Shows no text: it can be a secret.
impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Part")
    }
}

/// Replaces the variables in every value.
pub(super) fn resolve(raw: &mut RawConfig, environment: Environment<'_>, report: &mut Report) {
    for (key, entry) in raw.iter_mut().filter(|(_, entry)| entry.is_usable()) {
        let provided = Template::parse(entry.text(), environment).and_then(|found| {
            found
                .map(|template| Ok((template.expand()?, template)))
                .transpose()
        });
        match provided {
            Ok(None) => {}
            Ok(Some((text, template))) => entry.provide(template, text),
            Err(error) => {
                report.problem(entry.origin(), key, error.to_string(), error.remedy());
                entry.spoil();
            }
        }
    }
}

impl Template {
    /// `None` when there is no variable in the text.
    fn parse(text: &str, environment: Environment<'_>) -> Result<Option<Self>, ProviderError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut found = false;
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            literal.push_str(before);
            let variable = after.split_once('}').and_then(|(inside, behind)| {
                let (provider, wanted) = inside.split_once(':')?;
                Some((provider, wanted, behind))
            });
            if let Some((provider, wanted, behind)) = variable {
                parts.push(Part::Text(std::mem::take(&mut literal)));
                parts.push(Part::parse(provider, wanted, environment)?);
                found = true;
                rest = behind;
            } else {
                literal.push_str("${");
                rest = after;
            }
        }
        literal.push_str(rest);
        parts.push(Part::Text(literal));
        Ok(found.then_some(Self(parts)))
    }

    /// The text with its variables replaced, once: what a provider gives is not looked at again.
    fn expand(&self) -> Result<String, ProviderError> {
        let mut expanded = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => expanded.push_str(text),
                Part::Property { file, key } => expanded.push_str(&from_properties(file, key)?),
                Part::File { folder, name } => expanded.push_str(&from_directory(folder, name)?),
            }
        }
        Ok(expanded)
    }

    /// The text as the providers give it now.
    ///
    /// # Errors
    /// Which place has nothing, and what to do about it.
    pub(super) fn read(&self) -> Result<String, String> {
        self.expand()
            .map_err(|error| format!("{error}; {}", error.remedy()))
    }
}

impl Part {
    fn parse(
        provider: &str,
        wanted: &str,
        environment: Environment<'_>,
    ) -> Result<Self, ProviderError> {
        let (path, key) = wanted.split_once(':').unwrap_or(("", wanted));
        let known = ["file", "dir", "env"].contains(&provider);
        match provider {
            _ if known && key.is_empty() => Err(ProviderError::NoKey {
                provider: provider.to_owned(),
            }),
            "file" => Ok(Self::Property {
                file: path.into(),
                key: key.to_owned(),
            }),
            "dir" => Ok(Self::File {
                folder: path.into(),
                name: key.to_owned(),
            }),
            "env" => {
                environment(key)
                    .map(Self::Text)
                    .ok_or_else(|| ProviderError::VariableMissing {
                        name: key.to_owned(),
                    })
            }
            _ => Err(ProviderError::UnknownProvider {
                provider: provider.to_owned(),
            }),
        }
    }
}

/// A key of a properties file (`FileConfigProvider`).
fn from_properties(path: &Path, key: &str) -> Result<String, ProviderError> {
    let properties = properties::parse(&read(path)?).map_err(|error| ProviderError::Malformed {
        path: path.to_owned(),
        line: error.line,
    })?;
    let last = properties
        .into_iter()
        .rev()
        .find(|property| property.key == key);
    last.map(|property| property.value)
        .ok_or_else(|| ProviderError::KeyMissing {
            path: path.to_owned(),
            key: key.to_owned(),
        })
}

/// The content of a file in a folder (`DirectoryConfigProvider`), without a line break at its
/// end: Kafka's keeps it, but it is what `echo` and editors leave behind, never a part of a
/// password.
fn from_directory(path: &Path, file: &str) -> Result<String, ProviderError> {
    if file.contains(['/', '\\']) || file == ".." {
        return Err(ProviderError::NotInside {
            path: path.to_owned(),
            key: file.to_owned(),
        });
    }
    let mut content = read(&path.join(file))?;
    if content.ends_with('\n') {
        content.pop();
        if content.ends_with('\r') {
            content.pop();
        }
    }
    Ok(content)
}

fn read(path: &Path) -> Result<String, ProviderError> {
    // Text that is not UTF-8 is an error of this kind too (`InvalidData`).
    std::fs::read_to_string(path).map_err(|source| ProviderError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "USER" => Some("u${env:PASSWORD}".to_owned()),
            "PASSWORD" => Some("p".to_owned()),
            _ => None,
        }
    }

    fn expanded(text: &str) -> Result<Option<String>, String> {
        Template::parse(text, &environment)
            .and_then(|found| found.map(|template| template.expand()).transpose())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn replaces_variables_and_leaves_the_routers_alone() {
        assert_eq!(expanded("${env:PASSWORD}"), Ok(Some("p".to_owned())));
        assert_eq!(
            expanded("a${env:PASSWORD}b${env:PASSWORD}}"),
            Ok(Some("apbp}".to_owned()))
        );
        assert_eq!(
            expanded("${env:USER}"),
            Ok(Some("u${env:PASSWORD}".to_owned())),
            "once only"
        );
        assert_eq!(
            expanded("${x}-${env:PASSWORD}"),
            Ok(Some("${x}-p".to_owned()))
        );
        for text in [
            "claims.${routedByValue}.events",
            "${",
            "$env:x",
            "${}",
            "a:b",
            "${env:x",
        ] {
            assert_eq!(expanded(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn files_are_read_as_kafka_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db.properties");
        std::fs::write(&path, "# secrets\npassword : a b\nother=\\u00e4\nother=ö\n").unwrap();
        std::fs::write(folder.path().join("token"), "line 1\nline 2\r\n").unwrap();
        let file = |key: &str| expanded(&format!("${{file:{}:{key}}}", path.display()));
        let dir = |name: &str| expanded(&format!("${{dir:{}:{name}}}", folder.path().display()));
        assert_eq!(file("password"), Ok(Some("a b".to_owned())));
        assert_eq!(file("other"), Ok(Some("ö".to_owned())));
        assert_eq!(dir("token"), Ok(Some("line 1\nline 2".to_owned())));
        assert!(
            file("nothing")
                .unwrap_err()
                .ends_with("has no key \"nothing\"")
        );
        assert!(dir("nothing").unwrap_err().contains("cannot be read"));
        assert!(
            dir("../token")
                .unwrap_err()
                .contains("is not the name of a file")
        );
    }

    #[test]
    fn a_file_that_was_changed_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let password = folder.path().join("password");
        let text = format!(
            "${{dir:{}:password}}-${{env:PASSWORD}}",
            folder.path().display()
        );
        let template = Template::parse(&text, &environment).unwrap().unwrap();
        for secret in ["first", "second"] {
            std::fs::write(&password, secret).unwrap();
            assert_eq!(template.read(), Ok(format!("{secret}-p")));
        }
        std::fs::remove_file(&password).unwrap();
        let said = template.read().unwrap_err();
        assert!(said.contains(password.to_str().unwrap()), "{said}");
        assert!(!format!("{template:?}").contains("-p"));
    }

    #[test]
    fn says_what_is_missing() {
        for (text, what) in [
            (
                "${vault:secret/db:password}",
                "there is no config provider \"vault\"",
            ),
            (
                "${env:NOTHING}",
                "the environment variable NOTHING is not set",
            ),
            (
                "${file:/nowhere/db.properties:password}",
                "the file /nowhere/db.properties cannot be read (entity not found)",
            ),
            ("${file:/nowhere:}", "a ${file:…} variable has no key"),
            ("${env:}", "a ${env:…} variable has no key"),
        ] {
            assert_eq!(expanded(text).unwrap_err(), what);
        }
    }
}
