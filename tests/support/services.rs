//! PostgreSQL and Kafka. One of each serves the whole run (`dev/with-services`); a test that
//! stops or halts a service starts its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::proxy::Proxy;

/// The services every test shares.
#[derive(Clone, Debug)]
pub struct Services {
    pub pg_port: u16,
    /// The authority that signed the server's certificate.
    pub pg_ca: PathBuf,
    /// `host:port`
    pub kafka: String,
}

impl Services {
    pub fn shared() -> Self {
        Self {
            pg_port: variable("OUTBOXD_TEST_PG_PORT").parse().expect("a port"),
            pg_ca: variable("OUTBOXD_TEST_PG_CA").into(),
            kafka: variable("OUTBOXD_TEST_KAFKA"),
        }
    }

    /// The same database server with another broker.
    pub fn with_kafka(mut self, kafka: &OwnKafka) -> Self {
        self.kafka = kafka.address();
        self
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: these tests need services; run them with `make test`, or put `dev/with-services` before the command")
    })
}

/// A folder for this run's files, below the one that goes away with the services.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(&variable("OUTBOXD_TEST_DIR"))
        .join(format!("{name}-{}", uuid::Uuid::new_v4().simple()));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

/// A broker for one test, which may halt or stop it.
pub struct OwnKafka {
    folder: PathBuf,
    port: u16,
}

impl OwnKafka {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// With further arguments of `dev/kafka start`, such as `--prop name=value`.
    pub fn start_with(arguments: &[&str]) -> Self {
        let folder = scratch("kafka");
        let start = ["start", folder.to_str().unwrap()];
        let port = dev("kafka", &[&start, arguments].concat())
            .parse()
            .expect("a port");
        Self { folder, port }
    }

    /// Whoever comes through the proxy is told the proxy's address as the broker's own, so that
    /// all its connections go through it; [`Self::address`] goes past it.
    pub fn start_behind(proxy: &Proxy) -> Self {
        let kafka = Self::start_with(&["--proxy", &proxy.port().to_string()]);
        let port = std::fs::read_to_string(kafka.folder.join("proxied-port"))
            .expect("the port for the proxy");
        proxy.aim(&format!("127.0.0.1:{}", port.trim()));
        kafka
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Halts the broker where it stands (SIGSTOP): connections stay open and nothing answers.
    pub fn halt(&self) {
        signal(&self.pid(), "STOP");
    }

    /// Lets a halted broker go on.
    pub fn go_on(&self) {
        signal(&self.pid(), "CONT");
    }

    fn pid(&self) -> String {
        std::fs::read_to_string(self.folder.join("pid"))
            .expect("the broker's pid")
            .trim()
            .to_owned()
    }
}

impl Drop for OwnKafka {
    fn drop(&mut self) {
        dev("kafka", &["stop", self.folder.to_str().unwrap(), "kill"]);
    }
}

/// Sends a signal by its name.
pub fn signal(pid: &str, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), pid])
        .status()
        .expect("kill runs");
    assert!(status.success(), "kill -{name} {pid}");
}

/// Runs one of the scripts in `dev/` and returns what it printed.
fn dev(script: &str, arguments: &[&str]) -> String {
    let path = Path::new(&variable("OUTBOXD_TEST_DEV")).join(script);
    let output = Command::new(&path)
        .args(arguments)
        .output()
        .expect("the script runs");
    assert!(
        output.status.success(),
        "{} {arguments:?}: {}",
        path.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
