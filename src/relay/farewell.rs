use std::sync::OnceLock;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// A database server that is shutting down, and how long it may be held up (rule R11).
///
/// A server that shuts down waits until every stream has confirmed what it was sent. With a
/// broker that does not acknowledge, that would be for ever.
#[derive(Debug)]
pub(super) struct Farewell {
    going: watch::Receiver<bool>,
    grace: Duration,
    deadline: OnceLock<Instant>,
}

impl Farewell {
    /// `going` says whether the server is shutting down.
    pub(super) fn new(going: watch::Receiver<bool>, grace: Duration) -> Self {
        Self {
            going,
            grace,
            deadline: OnceLock::new(),
        }
    }

    /// Waits until the server is shutting down and the grace is over. Cancel-safe: the time
    /// counts from when it was first seen.
    pub(super) async fn overdue(&self) {
        let mut going = self.going.clone();
        if going.wait_for(|going| *going).await.is_err() {
            // Nobody watches the server any more.
            std::future::pending::<()>().await;
        }
        let deadline = self.deadline.get_or_init(|| {
            tracing::warn!(
                "PostgreSQL is shutting down. What is in flight has {} ms to be acknowledged.",
                self.grace.as_millis()
            );
            Instant::now() + self.grace
        });
        tokio::time::sleep_until(*deadline).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll_once(farewell: &Farewell) -> Poll<()> {
        pin!(farewell.overdue()).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn only_a_server_that_goes_is_ever_overdue_and_its_time_counts_once() {
        let (tell, going) = watch::channel(false);
        let farewell = Farewell::new(going, Duration::from_secs(3600));
        assert_eq!(poll_once(&farewell), Poll::Pending);
        assert!(farewell.deadline.get().is_none());
        tell.send_replace(true);
        assert_eq!(poll_once(&farewell), Poll::Pending);
        let deadline = *farewell.deadline.get().expect("the time runs");
        assert_eq!(poll_once(&farewell), Poll::Pending);
        assert_eq!(farewell.deadline.get(), Some(&deadline));
    }

    #[tokio::test]
    async fn without_any_grace_it_is_overdue_at_once() {
        let (_tell, going) = watch::channel(true);
        Farewell::new(going, Duration::ZERO).overdue().await;
    }
}
