use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::error::Chain;
use super::findings::{self, Finding, Shapes, SlotUse, Unfit, Warned};
use crate::config::Config;
use crate::model::RelationId;
use crate::ops::Connector;
use crate::source::postgres::{Database, Server, SourceError, TableFacts, view_slot};

/// How often everything is looked at.
const INTERVAL: Duration = Duration::from_secs(10);
/// A look that takes longer is given up, and its session with it: a cut network says nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks at the server from outside, over an ordinary session of its own that stays open,
/// whatever becomes of the relay: the one session there is beside the stream. Ends when dropped.
///
/// Every 10 s it looks at the slot, for the metrics, and at all that the stream is made of,
/// since that can change under it (rule R8). It notices a server that shuts down: such a server
/// ends ordinary sessions at once and lets no new one in, while it waits for streams (rule R11).
/// And it answers the stream's questions about tables.
pub(super) struct Watch {
    going: watch::Receiver<bool>,
    unfit: watch::Receiver<Option<Seen>>,
    questions: mpsc::Sender<Question>,
    stream: watch::Sender<Stream>,
    _watching: JoinSet<()>,
}

/// The running stream, or the last one.
#[derive(Default)]
struct Stream {
    /// Counts them; 0 before the first. What was seen under an earlier one, or before it, is
    /// not held against this one.
    number: u64,
    /// What was found, and said, before it started.
    known: Vec<Finding>,
}

/// What stood against a stream at a look that began while it was there.
struct Seen {
    stream: u64,
    unfit: Unfit,
}

/// What the catalog says of a table of this server.
struct Question {
    table: RelationId,
    server: Server,
    answer: oneshot::Sender<Result<TableFacts, SourceError>>,
}

impl Watch {
    /// Begins to look.
    pub(super) fn start(config: &Config, connector: &Connector, shapes: Shapes) -> Self {
        let (tell_going, going) = watch::channel(false);
        let (tell_unfit, unfit) = watch::channel(None);
        let (questions, asked) = mpsc::channel(1);
        let (stream, started) = watch::channel(Stream::default());
        let watcher = Watcher {
            config: config.clone(),
            connector: connector.clone(),
            session: None,
            stream: 0,
            warned: Warned::default(),
            shapes,
            started,
            going: tell_going,
            unfit: tell_unfit,
        };
        let mut watching = JoinSet::new();
        watching.spawn(watcher.run(asked));
        Self {
            going,
            unfit,
            questions,
            stream,
            _watching: watching,
        }
    }

    /// Whether the server is shutting down.
    pub(super) fn going(&self) -> watch::Receiver<bool> {
        self.going.clone()
    }

    /// A stream has started, after a look of its own at everything, which found this.
    pub(super) fn stream_started(&self, known: Vec<Finding>) {
        self.stream.send_modify(|stream| {
            stream.number += 1;
            stream.known = known;
        });
    }

    /// Waits until something is seen that must not be under the running stream. Cancel-safe.
    pub(super) async fn unfit(&self) -> Unfit {
        let stream = self.stream.borrow().number;
        let of_this = |seen: &Option<Seen>| seen.as_ref().is_some_and(|s| s.stream == stream);
        let mut unfit = self.unfit.clone();
        if let Ok(seen) = unfit.wait_for(of_this).await
            && let Some(seen) = seen.as_ref()
        {
            return seen.unfit.clone();
        }
        // Nobody looks any more.
        std::future::pending().await
    }

    /// Asks the catalog of `server` about a table (rule R6).
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub(super) async fn table_facts(
        &self,
        server: &Server,
        table: RelationId,
    ) -> Result<TableFacts, SourceError> {
        let (answer, answered) = oneshot::channel();
        let question = Question {
            table,
            server: server.clone(),
            answer,
        };
        let gone = || SourceError::NotYet("nobody looks at the server any more".to_owned());
        self.questions.send(question).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

struct Watcher {
    config: Config,
    connector: Connector,
    session: Option<Database>,
    /// The stream of the last look.
    stream: u64,
    /// What was warned of at it.
    warned: Warned,
    shapes: Shapes,
    started: watch::Receiver<Stream>,
    going: watch::Sender<bool>,
    unfit: watch::Sender<Option<Seen>>,
}

impl Watcher {
    async fn run(mut self, mut asked: mpsc::Receiver<Question>) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let session = &mut self.session;
            let ended = async {
                match session {
                    Some(database) => database.ended().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                by_the_server = ended => self.session_ended(by_the_server).await,
                Some(question) = asked.recv() => self.answer(question).await,
                _ = ticks.tick() => self.look().await,
            }
        }
    }

    async fn session_ended(&mut self, by_the_server: bool) {
        self.session = None;
        if by_the_server {
            // An administrator can end a single session too; then a new one is let in.
            self.session = Database::connect(&self.config.source).await.ok();
            self.going.send_replace(self.session.is_none());
        }
    }

    async fn answer(&mut self, question: Question) {
        let Question {
            table,
            server,
            answer,
        } = question;
        let asking = async {
            if self.session.as_ref().map(Database::server) != Some(&server) {
                self.session = Some(Database::connect_to(&self.config.source, &server).await?);
            }
            match &self.session {
                Some(database) => database.table_facts(table).await,
                None => Ok(TableFacts::default()),
            }
        };
        let facts = timeout(PATIENCE, asking).await.unwrap_or_else(|_| {
            Err(SourceError::NotYet(format!(
                "PostgreSQL at {server} does not answer questions about its catalog"
            )))
        });
        if facts.is_err() {
            self.session = None;
        }
        // Whoever asked may have given up meanwhile.
        let _ = answer.send(facts);
    }

    /// Errors are not worth more than a debug line: the relay meets them too, and says so.
    async fn look(&mut self) {
        let said = match timeout(PATIENCE, self.try_look()).await {
            Ok(Ok(())) => {
                self.going.send_replace(false);
                return;
            }
            Ok(Err(error)) => Chain(&error).to_string(),
            Err(_) => "it does not answer".to_owned(),
        };
        self.session = None;
        tracing::debug!(error = said, "The server cannot be looked at.");
    }

    async fn try_look(&mut self) -> Result<(), SourceError> {
        let source = &self.config.source;
        let stream = {
            let started = self.started.borrow();
            if started.number != self.stream {
                self.stream = started.number;
                self.warned.knows(&started.known);
            }
            started.number
        };
        let database = match &mut self.session {
            Some(database) => database,
            None => self.session.insert(Database::connect(source).await?),
        };
        let view = view_slot(database, &source.slot).await?;
        self.connector.slot(view.as_ref());
        if stream == 0 {
            return Ok(());
        }
        let facts = database.stream_facts(source).await?;
        let found = findings::of_stream(&facts, &self.config, SlotUse::InThisProcess);
        self.warned.say(&found);
        let unfit = self.shapes.judge(&found, facts.slot.as_ref());
        let seen = unfit.map(|unfit| Seen { stream, unfit });
        self.unfit.send_replace(seen);
        Ok(())
    }
}
