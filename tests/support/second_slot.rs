//! A second opinion on what was committed: PostgreSQL's own `test_decoding`, read with its own
//! `pg_recvlogical`. It shares no code with outboxd, and not the tables' word either.

use std::collections::HashMap;
use std::process::Command;

use super::database::TestDatabase;
use super::services::scratch;
use super::topic::Record;
use super::workload::Verdict;

/// A slot beside outboxd's. It has to be made before what it shall tell of, and goes away with
/// the database.
pub struct SecondSlot {
    name: String,
}

impl SecondSlot {
    pub fn create(database: &TestDatabase) -> Self {
        let slot = Self {
            name: format!("{}_2", database.name),
        };
        let arguments = ["--create-slot", "--plugin=test_decoding"];
        slot.pg_recvlogical(database, &arguments);
        slot
    }

    /// All inserts into the outbox from the slot's beginning to now, and drops the slot.
    pub async fn read(self, database: &TestDatabase) -> Log {
        let file = scratch("second-slot").join("log");
        let end = format!("--endpos={}", database.wal_end().await);
        let reading = ["--start", "--no-loop", &end, "-f", file.to_str().unwrap()];
        self.pg_recvlogical(database, &reading);
        self.pg_recvlogical(database, &["--drop-slot"]);
        Log::parse(&std::fs::read_to_string(file).expect("what pg_recvlogical wrote"))
    }

    /// Where the commit of this event's transaction ends: the position that says it is done.
    pub async fn commit_of(&self, database: &TestDatabase, event: &str) -> String {
        let sql = format!(
            "WITH log AS MATERIALIZED (SELECT * FROM pg_logical_slot_peek_changes('{}', NULL, NULL))
             SELECT lsn::text FROM log
             WHERE data LIKE 'COMMIT%' AND xid::text = (SELECT xid::text FROM log WHERE data LIKE '%{event}%')",
            self.name
        );
        database.ask(&sql).await.expect("the event is in the log")
    }

    fn pg_recvlogical(&self, database: &TestDatabase, arguments: &[&str]) {
        let output = Command::new("pg_recvlogical")
            .args(["-h", "localhost", "-U", "postgres", "-d", &database.name])
            .args(["-p", &database.services.pg_port.to_string()])
            .args(["-S", &self.name])
            .args(arguments)
            .env("PGPASSWORD", "postgres")
            .output()
            .expect("pg_recvlogical runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
}

/// What the second slot tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The ids of the events, in the order of commits and statements.
    pub events: Vec<String>,
    /// How many events each transaction with any had.
    pub sizes: Vec<usize>,
}

impl Log {
    pub fn parse(text: &str) -> Self {
        let mut log = Self::default();
        let mut before = 0;
        for line in text.lines() {
            if let Some(row) = line.strip_prefix("table public.outbox: INSERT: id[uuid]:'") {
                let (id, _) = row.split_once('\'').expect("a quoted id");
                log.events.push(id.to_owned());
            } else if line.starts_with("COMMIT ") && log.events.len() > before {
                log.sizes.push(log.events.len() - before);
                before = log.events.len();
            }
        }
        log
    }

    /// Compares the log with a topic of one partition, where the first copies have to stand in
    /// the log's order: so each key's do.
    pub fn judge(&self, records: &[Record]) -> Verdict {
        let places: HashMap<&str, u64> = self.events.iter().map(String::as_str).zip(1..).collect();
        Verdict::of(places.len(), records, |record| {
            Some((String::new(), *places.get(record.id().as_str())?))
        })
    }

    /// The middle one of the transactions' sizes, and the largest.
    pub fn median_and_largest(&self) -> (usize, usize) {
        let mut sizes = self.sizes.clone();
        sizes.sort_unstable();
        (sizes[sizes.len() / 2], sizes[sizes.len() - 1])
    }
}
