use std::fmt;
use std::sync::Arc;

/// Which input a key was read from. A later layer wins over an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The Connect worker's properties (`--worker`).
    Worker,
    /// The connector's own file.
    Connector,
    /// A `--set key=value` of the command line, or an environment variable in its place.
    Set,
}

/// Where a key was written. Shown as `claims-outbox.json:7`, `OUTBOXD_HTTP_PORT` or `--set`;
/// ordered by layer, then by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    layer: Layer,
    file: Arc<str>,
    place: usize,
}

impl Origin {
    /// A line of a file, counted from 1. The file is named as the user named it.
    pub(super) fn line(layer: Layer, file: &Arc<str>, line: usize) -> Self {
        Self {
            layer,
            file: Arc::clone(file),
            place: line,
        }
    }

    /// A file as a whole, for what is missing from it.
    pub(super) fn file(layer: Layer, file: &Arc<str>) -> Self {
        Self::line(layer, file, 0)
    }

    /// One of the `--set` arguments, counted from 1.
    pub(super) fn set(index: usize) -> Self {
        Self {
            layer: Layer::Set,
            file: Arc::from(""),
            place: index,
        }
    }

    /// An environment variable.
    pub(super) fn variable(name: &str) -> Self {
        Self {
            layer: Layer::Set,
            file: Arc::from(name),
            place: 0,
        }
    }

    /// The input it belongs to.
    pub fn layer(&self) -> Layer {
        self.layer
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.layer, self.place) {
            (Layer::Set, 1..) => f.write_str("--set"),
            (_, 0) => f.write_str(&self.file),
            (_, line) => write!(f, "{}:{line}", self.file),
        }
    }
}
