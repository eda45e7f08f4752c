//! Keeps an outboxd running, as a supervisor or Kubernetes does: what ends is started again.

use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::support::outboxd::{Outboxd, Setup};

/// Between two looks, and before one that ended is started again.
const PAUSE: Duration = Duration::from_millis(50);

pub struct Keeper {
    kept: Arc<Mutex<Kept>>,
    keeping: JoinHandle<()>,
}

struct Kept {
    setup: Setup,
    outboxd: Outboxd,
    /// In `FAILPOINTS` of every process.
    always: Option<String>,
    /// In `FAILPOINTS` of the next process only.
    once: Option<String>,
    /// How often it ended in which way.
    endings: BTreeMap<String, usize>,
    last: Option<ExitStatus>,
}

impl Kept {
    fn spawn(&mut self) {
        let points: Vec<String> = self
            .always
            .iter()
            .cloned()
            .chain(self.once.take())
            .collect();
        self.setup.environment = match points.is_empty() {
            true => Vec::new(),
            false => vec![("FAILPOINTS".to_owned(), points.join(";"))],
        };
        self.outboxd = self.setup.spawn();
    }

    fn look(&mut self) {
        let Some(status) = self.outboxd.has_ended() else {
            return;
        };
        // "exit status: 3", "signal: 9 (SIGKILL)"
        *self.endings.entry(status.to_string()).or_default() += 1;
        self.last = Some(status);
        self.spawn();
    }
}

impl Keeper {
    /// `always` holds for all processes, see `FAILPOINTS`.
    pub fn start(setup: Setup, always: Option<String>) -> Self {
        let outboxd = setup.spawn();
        let mut kept = Kept {
            setup,
            outboxd,
            always,
            once: None,
            endings: BTreeMap::new(),
            last: None,
        };
        if kept.always.is_some() {
            kept.outboxd.kill();
            kept.spawn();
        }
        let kept = Arc::new(Mutex::new(kept));
        let keeping = tokio::spawn({
            let kept = Arc::clone(&kept);
            async move {
                loop {
                    tokio::time::sleep(PAUSE).await;
                    lock(&kept).look();
                }
            }
        });
        Self { kept, keeping }
    }

    pub fn signal(&self, name: &str) {
        let mut kept = lock(&self.kept);
        // Of one that has just ended there is nothing to signal.
        kept.look();
        kept.outboxd.signal(name);
    }

    /// The process that follows this one dies at this failpoint.
    pub fn next_dies(&self, failpoint: &str) {
        lock(&self.kept).once = Some(failpoint.to_owned());
    }

    /// Whether the process that follows has been started.
    pub fn has_next_started(&self) -> bool {
        lock(&self.kept).once.is_none()
    }

    /// How often it has ended so far, in whatever way.
    pub fn ended(&self) -> usize {
        lock(&self.kept).endings.values().sum()
    }

    /// How it ended last.
    pub fn last_ending(&self) -> Option<ExitStatus> {
        lock(&self.kept).last
    }

    /// Everything all its processes have logged.
    pub fn log(&self) -> String {
        lock(&self.kept).setup.whole_log()
    }

    /// Lets the last one end cleanly; its exit code, and how often each ending was seen before.
    pub async fn end(self) -> (i32, BTreeMap<String, usize>) {
        self.keeping.abort();
        // Ended when nobody else holds the lock.
        let _ = self.keeping.await;
        let kept = Arc::into_inner(self.kept).expect("nobody else keeps it");
        let Kept {
            mut outboxd,
            endings,
            ..
        } = kept.into_inner().expect("no panic");
        (outboxd.stop().await, endings)
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().expect("no panic while it is held")
}
