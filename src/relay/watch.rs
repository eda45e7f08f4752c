use std::time::Duration;

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
/// Errors are not worth more than a debug line: the relay meets them too, and says so.
pub(super) async fn watch_slot(options: SourceOptions, connector: Connector) {
    let mut session = None;
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match timeout(PATIENCE, look(&mut session, &options, &connector)).await {
            Ok(Ok(())) => {}
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
