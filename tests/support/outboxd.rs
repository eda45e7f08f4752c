//! The real binary as a child process.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::RecvTimeoutError;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::database::TestDatabase;
use super::proxy::Proxy;
use super::services::{Services, scratch, signal};
use super::{PATIENCE, eventually};

/// A configuration and where it lies; starts processes with it.
pub struct Setup {
    folder: PathBuf,
    pub connector: Map<String, Value>,
    pub worker: Option<String>,
    pub arguments: Vec<String>,
    /// A connector's file as it is, instead of `connector`.
    pub file: Option<PathBuf>,
    /// Variables of the process, besides the tests' own.
    pub environment: Vec<(String, String)>,
    services: Services,
}

impl Setup {
    /// The exercise's connector on this database, with topics named after it.
    pub fn of(database: &TestDatabase) -> Self {
        let mut setup = Self::bare(database);
        for (key, value) in [
            ("table.include.list", "public.outbox"),
            ("transforms", "outbox"),
            (
                "transforms.outbox.type",
                "io.debezium.transforms.outbox.EventRouter",
            ),
            ("transforms.outbox.table.field.event.key", "aggregate_id"),
            ("transforms.outbox.route.by.field", "aggregate_type"),
            (
                "transforms.outbox.table.fields.additional.placement",
                "type:header:eventType",
            ),
            ("extended.headers.enabled", "false"),
            ("snapshot.mode", "no_data"),
        ] {
            setup.set(key, value);
        }
        setup.set(
            "transforms.outbox.route.topic.replacement",
            &format!("{}.${{routedByValue}}.events", database.name),
        );
        setup
    }

    /// Only what reaches the database.
    pub fn bare(database: &TestDatabase) -> Self {
        let connector = json!({
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": "localhost",
            "database.port": database.services.pg_port.to_string(),
            "database.user": "postgres",
            "database.password": "postgres",
            "database.dbname": database.name,
            "database.sslmode": "require",
            "topic.prefix": "golden",
            "plugin.name": "pgoutput",
            "slot.name": database.name,
            "publication.name": database.name,
            "publication.autocreate.mode": "filtered",
            // Any free one; `Outboxd::get` reads from the log which it is.
            "outboxd.http.port": "0",
        });
        let Value::Object(connector) = connector else {
            unreachable!("an object is an object")
        };
        Self {
            folder: scratch("outboxd"),
            connector,
            worker: None,
            arguments: Vec::new(),
            file: None,
            environment: Vec::new(),
            services: database.services.clone(),
        }
    }

    pub fn set(&mut self, key: &str, value: &str) {
        self.connector.insert(key.to_owned(), value.into());
    }

    /// Reaches PostgreSQL through the proxy; without TLS, so that the proxy sees messages.
    pub fn database_behind(&mut self, proxy: &Proxy) {
        self.set("database.hostname", "127.0.0.1");
        self.set("database.port", &proxy.port().to_string());
        self.set("database.sslmode", "disable");
    }

    /// Reaches Kafka through the proxy, see `OwnKafka::start_behind`.
    pub fn kafka_behind(&mut self, proxy: &Proxy) {
        self.kafka_at(&proxy.address());
    }

    /// Reaches Kafka at another address than the test itself.
    pub fn kafka_at(&mut self, address: &str) {
        self.services.kafka = address.to_owned();
    }

    /// The command with all its files written.
    fn command(&self, name: &str) -> Command {
        let connector = self.folder.join("connector.json");
        let content = json!({"name": "test", "config": self.connector});
        std::fs::write(&connector, content.to_string()).expect("write the connector's file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_outboxd"));
        command
            .args(["--log-format", "text", name])
            .arg(self.file.as_ref().unwrap_or(&connector));
        command
            .arg("--set")
            .arg(format!("bootstrap.servers={}", self.services.kafka));
        if let Some(worker) = &self.worker {
            let file = self.folder.join("worker.properties");
            std::fs::write(&file, worker).expect("write the worker's file");
            command.arg("--worker").arg(file);
        }
        command.args(&self.arguments).stdin(Stdio::null());
        command.envs(self.environment.iter().cloned());
        command
    }

    /// Starts the process and does not wait for anything.
    pub fn spawn(&self) -> Outboxd {
        let file = |name: &str| {
            File::options()
                .create(true)
                .append(true)
                .open(self.folder.join(name))
                .unwrap()
        };
        let (output, log) = (file("stdout"), file("stderr"));
        let logged_before = log.metadata().unwrap().len();
        let child = self
            .command("run")
            .stdout(output)
            .stderr(log)
            .spawn()
            .expect("the binary starts");
        Outboxd {
            child,
            folder: self.folder.clone(),
            logged_before,
        }
    }

    /// What all its processes have logged.
    pub fn whole_log(&self) -> String {
        let all = std::fs::read(self.folder.join("stderr")).expect("read the log");
        String::from_utf8_lossy(&all).into_owned()
    }

    /// Starts the process and waits until it streams.
    pub async fn start(&self) -> Outboxd {
        let mut outboxd = self.spawn();
        outboxd.says("Streaming ").await;
        outboxd
    }

    /// Runs another command than `run` to its end.
    pub fn tell(&self, command: &str, arguments: &[&str]) -> Said {
        let output = self
            .command(command)
            .args(arguments)
            .output()
            .expect("the binary starts");
        Said {
            code: output.status.code().expect("it exits"),
            output: String::from_utf8(output.stdout).unwrap(),
            error: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the process to its end, which must come by itself; exit code and standard error.
    pub fn fails(&self) -> (i32, String) {
        let mut command = self.command("run");
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let id = child.id().to_string();
        let mut stderr = child.stderr.take().expect("a pipe");
        let (done, ended) = std::sync::mpsc::channel::<()>();
        // One that does not end is ended, so that the test fails with what it said.
        let guard = std::thread::spawn(move || {
            if ended
                .recv_timeout(PATIENCE)
                .is_err_and(|error| error == RecvTimeoutError::Timeout)
            {
                signal(&id, "KILL");
            }
        });
        let mut said = String::new();
        stderr
            .read_to_string(&mut said)
            .expect("what it says is text");
        let status = child.wait().expect("it ends");
        drop(done);
        guard.join().expect("the guard ends");
        let code = status
            .code()
            .unwrap_or_else(|| panic!("it does not end by itself:\n{said}"));
        (code, said)
    }
}

/// The lines of a log at WARN or ERROR, and what is no log line; all but what a first start says
/// of the slot it made, and what comes of other tests' slots on the same server.
pub fn complaints(log: &str) -> Vec<String> {
    let is_complaint = |line: &&str| {
        let level = line.split_whitespace().nth(1);
        !matches!(level, Some("INFO" | "DEBUG" | "TRACE"))
            && !line.contains("Created replication slot")
            && !line.contains("The server seems to have standbys")
    };
    log.lines()
        .filter(is_complaint)
        .map(str::to_owned)
        .collect()
}

/// What a command that ends by itself said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub output: String,
    pub error: String,
}

impl Said {
    /// The exit code, and words that its output has to contain.
    #[track_caller]
    pub fn expect(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{self}");
        for word in words {
            assert!(self.output.contains(word), "{word} is missing in {self}");
        }
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}\n{}{}", self.code, self.output, self.error)
    }
}

/// A running outboxd; killed when dropped.
pub struct Outboxd {
    child: Child,
    folder: PathBuf,
    logged_before: u64,
}

impl Outboxd {
    /// What this process has logged.
    pub fn log(&self) -> String {
        let all = std::fs::read(self.folder.join("stderr")).expect("read the log");
        let from = usize::try_from(self.logged_before).unwrap();
        String::from_utf8_lossy(&all[from.min(all.len())..]).into_owned()
    }

    /// What was printed to standard output so far.
    pub fn output(&self) -> String {
        std::fs::read_to_string(self.folder.join("stdout")).expect("read the output")
    }

    /// Waits until the log contains `text`; fails at once when the process ends without.
    pub async fn says(&mut self, text: &str) {
        eventually(&format!("outboxd says '{text}'"), async || {
            if self.log().contains(text) {
                return Some(());
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!(
                    "outboxd ended with {status} and did not say '{text}':\n{}",
                    self.log()
                );
            }
            None
        })
        .await;
    }

    /// Where metrics and health are answered, as the log says.
    pub fn http_address(&self) -> Option<String> {
        let log = self.log();
        let (_, rest) = log.split_once("Metrics and health at http://")?;
        Some(rest.split_once(' ')?.0.to_owned())
    }

    /// Status code and body of a GET.
    pub async fn get(&self, path: &str) -> (u16, String) {
        let address = eventually("outboxd listens", async || self.http_address()).await;
        let mut stream = TcpStream::connect(address).await.expect("connect");
        // By HTTP/1.0 the body ends with the connection.
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("ask");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, body.to_owned())
    }

    /// Waits until `/health/ready` answers with the code, and returns what it says. Liveness has
    /// to be well all the time.
    pub async fn ready_becomes(&self, expected: u16) -> String {
        eventually(&format!("/health/ready answers {expected}"), async || {
            let (live, body) = self.get("/health/live").await;
            assert_eq!(live, 200, "{body}");
            let (code, body) = self.get("/health/ready").await;
            (code == expected).then_some(body)
        })
        .await
    }

    /// What it has said so far at WARN or ERROR.
    pub fn complaints(&self) -> Vec<String> {
        complaints(&self.log())
    }

    /// The value of a series of this process's only connector; `series` names the metric and
    /// further labels, such as `outboxd_errors_total,class="retry"`.
    pub async fn metric(&self, series: &str) -> Option<f64> {
        let (metric, labels) = series.split_at(series.find(',').unwrap_or(series.len()));
        let prefix = format!("{metric}{{connector=\"test\"{labels}}}");
        let (_, text) = self.get("/metrics").await;
        let line = text.lines().find_map(|line| line.strip_prefix(&prefix))?;
        Some(line.trim().parse().expect("a number"))
    }

    pub fn signal(&self, name: &str) {
        signal(&self.child.id().to_string(), name);
    }

    /// SIGTERM, and the exit code it led to.
    pub async fn stop(&mut self) -> i32 {
        self.signal("TERM");
        self.exit_code().await
    }

    /// Waits for the end.
    pub async fn exit_code(&mut self) -> i32 {
        eventually("outboxd ends", async || self.child.try_wait().unwrap())
            .await
            .code()
            .expect("it ended by itself")
    }

    /// Waits for an end by a signal, as at a failpoint.
    pub async fn dies(&mut self) {
        let status = eventually("outboxd dies", async || self.child.try_wait().unwrap()).await;
        assert_eq!(status.code(), None, "it ended by itself: {}", self.log());
    }

    /// How it ended, if it did.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }

    /// How many threads and open descriptors it has now.
    pub fn threads_and_descriptors(&self) -> (usize, usize) {
        let count = |kind: &str| {
            let entries = std::fs::read_dir(format!("/proc/{}/{kind}", self.child.id()));
            entries.expect("it runs").count()
        };
        (count("task"), count("fd"))
    }

    /// The most memory it has had resident, in KiB (`VmHWM`).
    pub fn peak_memory_kib(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .expect("VmHWM");
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Outboxd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- outboxd's log\n{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
