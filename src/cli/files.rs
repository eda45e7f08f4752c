use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where a container finds its configuration mounted.
const FOLDER: &str = "/etc/outboxd";

/// The files to read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Files {
    /// The connector's.
    pub(super) connector: PathBuf,
    /// The Connect worker's.
    pub(super) worker: Option<PathBuf>,
}

/// Why there is nothing to read.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilesError {
    /// Nobody says where the configuration is.
    #[error(
        "no configuration given: name its FILE, set OUTBOXD_CONFIG to it, or put one *.json or *.properties file into {}",
        .0.display()
    )]
    None(PathBuf),
    /// One process runs one connector.
    #[error(
        "{} holds several configurations: {names}. Name the connector's with OUTBOXD_CONFIG, and that of the Connect worker with OUTBOXD_WORKER",
        .folder.display()
    )]
    Several {
        /// The folder.
        folder: PathBuf,
        /// Its files, by name.
        names: String,
    },
    /// The folder cannot be looked into.
    #[error("cannot look for a configuration in {}: {source}", .folder.display())]
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Files {
    /// What the command line names, else `OUTBOXD_CONFIG` and `OUTBOXD_WORKER`, else the one
    /// connector in `/etc/outboxd`.
    ///
    /// # Errors
    /// When no connector is to be found, or several.
    pub(super) fn find(
        connector: Option<PathBuf>,
        worker: Option<PathBuf>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, FilesError> {
        Self::find_in(Path::new(FOLDER), connector, worker, environment)
    }

    fn find_in(
        folder: &Path,
        connector: Option<PathBuf>,
        worker: Option<PathBuf>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, FilesError> {
        // An empty variable is how many deployment tools leave one out.
        let named = |variable| {
            let value = environment(variable).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let worker = worker.or_else(|| named("OUTBOXD_WORKER"));
        let connector = match connector.or_else(|| named("OUTBOXD_CONFIG")) {
            Some(connector) => connector,
            None => only_file(folder, worker.as_deref())?,
        };
        Ok(Self { connector, worker })
    }
}

/// The one configuration in the folder that is not the worker's.
fn only_file(folder: &Path, worker: Option<&Path>) -> Result<PathBuf, FilesError> {
    let mut found = configurations(folder).map_err(|source| FilesError::Unreadable {
        folder: folder.to_owned(),
        source,
    })?;
    found.retain(|path| Some(path.as_path()) != worker);
    let Some(file) = found.pop() else {
        return Err(FilesError::None(folder.to_owned()));
    };
    if found.is_empty() {
        return Ok(file);
    }
    found.push(file);
    let mut names: Vec<_> = found
        .iter()
        .filter_map(|path| path.file_name())
        .map(OsStr::to_string_lossy)
        .collect();
    names.sort();
    Err(FilesError::Several {
        folder: folder.to_owned(),
        names: names.join(", "),
    })
}

fn configurations(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let extension = path.extension().and_then(OsStr::to_str);
        // Kubernetes mounts files as links.
        if matches!(extension, Some("json" | "properties")) && path.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        folder
    }

    fn find(folder: &Path, variables: &[(&str, &Path)]) -> Result<Files, FilesError> {
        Files::find_in(folder, None, None, &|name| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some(value.to_str().unwrap().to_owned())
        })
    }

    #[test]
    fn the_command_line_goes_before_the_environment_and_that_before_the_folder() {
        let folder = folder(&["claims.json"]);
        let other = Path::new("/other.json");
        let found = find(folder.path(), &[]).unwrap();
        assert_eq!(found.connector, folder.path().join("claims.json"));
        let found = find(folder.path(), &[("OUTBOXD_CONFIG", other)]).unwrap();
        assert_eq!(found.connector, other);
        let given = Some(PathBuf::from("given.json"));
        let found = Files::find_in(folder.path(), given, None, &|_| Some("x".to_owned())).unwrap();
        assert_eq!(found.connector, Path::new("given.json"));
        assert_eq!(found.worker.as_deref(), Some(Path::new("x")));
    }

    #[test]
    fn an_empty_variable_names_nothing() {
        let folder = folder(&["claims.json"]);
        let found = find(folder.path(), &[("OUTBOXD_WORKER", Path::new(""))]).unwrap();
        assert_eq!(found.worker, None);
    }

    #[test]
    fn the_workers_file_beside_it_is_no_second_connector() {
        let folder = folder(&["claims.json", "worker.properties", "README.md"]);
        let worker = folder.path().join("worker.properties");
        let found = find(folder.path(), &[("OUTBOXD_WORKER", &worker)]).unwrap();
        assert_eq!(found.connector, folder.path().join("claims.json"));
        assert_eq!(found.worker.as_deref(), Some(worker.as_path()));
    }

    #[test]
    fn several_connectors_are_named() {
        let folder = folder(&["b.properties", "a.json"]);
        let said = find(folder.path(), &[]).unwrap_err().to_string();
        assert!(said.contains("a.json, b.properties"), "{said}");
        assert!(said.contains("OUTBOXD_CONFIG"), "{said}");
    }

    #[test]
    fn an_empty_or_missing_folder_says_where_to_put_it() {
        let folder = folder(&["notes.txt"]);
        for folder in [folder.path(), &folder.path().join("missing")] {
            let said = find(folder, &[]).unwrap_err().to_string();
            assert!(said.contains(folder.to_str().unwrap()), "{said}");
        }
    }
}
