use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::supervise::Chain;
use crate::ops::Connector;
use crate::source::postgres::{Database, SourceError, SourceOptions, view_slot};

/// How often the slot is looked at.
const INTERVAL: Duration = Duration::from_secs(10);
/// A look that takes longer is given up, and its session with it: a cut network says nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks at the slot every 10 s from outside, over a session of its own that stays open, and
/// tells what it sees. Runs until dropped, whatever becomes of the relay.
///
/// The session is also the one that notices a server that shuts down: such a server ends
/// ordinary sessions at once and lets no new one in, while it waits for streams. `going` is told
/// (rule R11).
///
/// Errors are not worth more than a debug line: the relay meets them too, and says so.
pub(super) async fn watch_slot(
    options: SourceOptions,
    connector: Connector,
    going: watch::Sender<bool>,
) {
    let mut session: Option<Database> = None;
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let ended = async {
            match &mut session {
                Some(database) => database.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            by_the_server = ended => {
                session = None;
                if by_the_server {
                    // An administrator can end a single session too; then a new one is let in.
                    session = Database::connect(&options).await.ok();
                    going.send_replace(session.is_none());
                }
                continue;
            }
            _ = ticks.tick() => {}
        }
        match timeout(PATIENCE, look(&mut session, &options, &connector)).await {
            Ok(Ok(())) => {
                going.send_replace(false);
            }
            Ok(Err(error)) => {
                session = None;
                tracing::debug!(error = %Chain(&error), "The slot cannot be looked at.");
            }
            Err(_) => {
                session = None;
                tracing::debug!("The slot cannot be looked at: the server does not answer.");
            }
        }
    }
}

async fn look(
    session: &mut Option<Database>,
    options: &SourceOptions,
    connector: &Connector,
) -> Result<(), SourceError> {
    let database = match session {
        Some(database) => database,
        None => session.insert(Database::connect(options).await?),
    };
    let view = view_slot(database, &options.slot).await?;
    connector.slot(view.as_ref());
    Ok(())
}
