//! PostgreSQL and Kafka. One of each serves the whole run (`dev/with-services`); a test that
//! stops or halts a service starts its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::proxy::Proxy;
use super::{PATIENCE, database, eventually};

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

    /// The same broker with another database server.
    pub fn with_postgres(mut self, postgres: &OwnPostgres) -> Self {
        self.pg_port = postgres.port();
        self.pg_ca = postgres.certificates().join("ca.pem");
        self
    }

    /// The same database server with another broker.
    pub fn with_kafka(mut self, kafka: &OwnKafka) -> Self {
        self.kafka = kafka.address();
        self
    }
}

/// The major version of PostgreSQL that this run is for.
pub fn postgres_version() -> u32 {
    let version = variable("OUTBOXD_TEST_PG_VERSION");
    version.parse().expect("a major version")
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
    /// What it was started with.
    arguments: Vec<String>,
}

impl OwnKafka {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// One that may stand for up to a minute without being shut out by its controller; what
    /// comes of that has a test of its own.
    pub fn start_to_halt() -> Self {
        Self::start_with(&["--prop", "broker.session.timeout.ms=60000"])
    }

    /// With further arguments of `dev/kafka start`, such as `--prop name=value`.
    pub fn start_with(arguments: &[&str]) -> Self {
        Self::start_in(scratch("kafka"), arguments)
    }

    /// In this folder, which may hold ports that are chosen already.
    pub fn start_in(folder: PathBuf, arguments: &[&str]) -> Self {
        let mut kafka = Self {
            folder,
            port: 0,
            arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
        };
        kafka.port = kafka.start_again();
        kafka
    }

    /// Ends the broker: cleanly, or with `kill` as by a crash.
    pub fn stop(&self, kill: bool) {
        let stop = ["stop", self.folder.to_str().unwrap(), "kill"];
        dev("kafka", &stop[..2 + usize::from(kill)]);
    }

    /// Starts the broker that was ended on the same data and port; returns the port.
    pub fn start_again(&self) -> u16 {
        let start = ["start", self.folder.to_str().unwrap()];
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let port = dev("kafka", &[&start, arguments.as_slice()].concat());
        port.parse().expect("a port")
    }

    /// Whoever comes through the proxy is told the proxy's address as the broker's own, so that
    /// all its connections go through it; [`Self::address`] goes past it.
    pub fn start_behind(proxy: &Proxy) -> Self {
        let kafka = Self::start_with(&["--proxy", &proxy.port().to_string()]);
        proxy.aim(&kafka.second_address());
        kafka
    }

    /// Of its second listener, which is there for a proxy, or for other settings.
    pub fn second_address(&self) -> String {
        let port = std::fs::read_to_string(self.folder.join("proxied-port"));
        format!("127.0.0.1:{}", port.expect("the second port").trim())
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Runs one of Kafka's own tools against this broker.
    pub fn tool(&self, name: &str, arguments: &[&str]) {
        let address = self.address();
        let begin = [name, "--bootstrap-server", &address];
        dev("kafka-tool", &[&begin, arguments].concat());
    }

    /// Halts the broker where it stands (SIGSTOP): connections stay open and nothing answers.
    /// Returns when all its threads stand: on a busy machine some go on for a while.
    pub fn halt(&self) {
        let pid = self.pid();
        signal(&pid, "STOP");
        let deadline = Instant::now() + PATIENCE;
        while !stands(&pid) {
            assert!(Instant::now() < deadline, "the broker does not halt");
            std::thread::park_timeout(Duration::from_millis(1));
        }
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
        self.stop(true);
    }
}

/// A database server for one test, which may stop it or change who may log in and how.
/// Declare it before the databases on it, so that it outlives them.
pub struct OwnPostgres {
    folder: PathBuf,
    port: u16,
}

impl OwnPostgres {
    /// Of the run's version, like everything that has no reason for another one.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// `settings` are `name=value`, and hold until the next start.
    pub fn start_with(settings: &[&str]) -> Self {
        Self::start_version(postgres_version(), settings)
    }

    /// `version` is the major one, 14 to 18.
    pub fn start_version(version: u32, settings: &[&str]) -> Self {
        let folder = scratch("pg");
        let port = dev_postgres(
            &folder,
            &["--version", &version.to_string(), "--"],
            settings,
        )
        .parse()
        .expect("a port");
        Self { folder, port }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The cluster.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The folder with `ca.pem`, `other-ca.pem`, `client.pem` and `client.key`.
    pub fn certificates(&self) -> PathBuf {
        self.folder.join("certs")
    }

    /// `mode` is `fast`, `immediate` or `kill`. Returns when the server is gone.
    pub fn stop(&self, mode: &str) {
        dev("postgres", &["stop", self.folder.to_str().unwrap(), mode]);
    }

    /// Starts the stopped server on the same data and port.
    pub fn start_again(&self, settings: &[&str]) {
        dev_postgres(&self.folder, &["--"], settings);
    }

    /// Halts the server and all its sessions where they stand (SIGSTOP).
    pub fn halt(&self) {
        self.signal_all("STOP");
    }

    /// Lets a halted server go on.
    pub fn go_on(&self) {
        self.signal_all("CONT");
    }

    fn signal_all(&self, name: &str) {
        let pid = self.pid();
        signal(&pid, name);
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.expect("the server runs");
        // Any of them may have ended meanwhile.
        let _ = Command::new("kill")
            .arg(format!("-{name}"))
            .args(children.split_whitespace())
            .stderr(std::process::Stdio::null())
            .status();
    }

    /// Makes the server one in recovery: read-only, as a replica that nobody sends anything to.
    pub fn become_standby(&self) {
        self.stop("fast");
        std::fs::write(self.folder.join("data/standby.signal"), "").expect("write standby.signal");
        self.start_again(&[]);
    }

    /// Puts these lines before those of pg_hba.conf that let everybody in by SCRAM, instead of
    /// what an earlier call put there. Returns when they hold.
    pub async fn hba(&self, lines: &[&str]) {
        let before = self.loaded_at().await;
        let content = format!(
            "{}\nlocal all all trust\nhost all all all scram-sha-256\n",
            lines.join("\n")
        );
        std::fs::write(self.folder.join("data/pg_hba.conf"), content).expect("write pg_hba.conf");
        signal(&self.pid(), "HUP");
        eventually("the server reads pg_hba.conf again", async || {
            (self.loaded_at().await != before).then_some(())
        })
        .await;
    }

    /// When the settings that hold for a new session were read.
    async fn loaded_at(&self) -> String {
        let session = database::connect(self.port, "postgres").await;
        let row = session
            .query_one("SELECT pg_conf_load_time()::text", &[])
            .await
            .expect("the time of the last reload");
        row.get(0)
    }

    /// The postmaster's process id.
    pub fn pid(&self) -> String {
        let file = std::fs::read_to_string(self.folder.join("data/postmaster.pid"));
        let file = file.expect("the server runs");
        file.lines().next().expect("a pid").trim().to_owned()
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).expect("the server's log")
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        self.stop("kill");
    }
}

fn dev_postgres(folder: &Path, arguments: &[&str], settings: &[&str]) -> String {
    let mut all = vec!["start", folder.to_str().unwrap()];
    all.extend(arguments);
    for setting in settings {
        all.extend(["-c", setting]);
    }
    dev("postgres", &all)
}

/// Whether all threads of the process are stopped.
fn stands(pid: &str) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the process lives");
    threads.flatten().all(|thread| {
        // One that has just ended does nothing any more.
        std::fs::read_to_string(thread.path().join("status"))
            .map_or(true, |status| status.contains("\nState:\tT"))
    })
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
