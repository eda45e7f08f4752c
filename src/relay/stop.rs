use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A request to end cleanly, and the time that may take.
#[derive(Debug, Clone)]
pub struct Stop {
    requested: CancellationToken,
    timeout: Duration,
    deadline: OnceLock<Instant>,
}

impl Stop {
    /// Ends are requested by cancelling `requested`; from then on, `timeout` may pass until
    /// everything is left as it is.
    pub fn new(requested: CancellationToken, timeout: Duration) -> Self {
        Self {
            requested,
            timeout,
            deadline: OnceLock::new(),
        }
    }

    /// Whether the end was requested.
    pub(super) fn is_requested(&self) -> bool {
        self.requested.is_cancelled()
    }

    /// Waits for the request. Cancel-safe.
    pub(super) async fn requested(&self) {
        self.requested.cancelled().await;
    }

    /// Waits for the request and then until its time is over. Cancel-safe: the time counts
    /// from the request that was seen first.
    pub(super) async fn overdue(&self) {
        self.requested.cancelled().await;
        let deadline = self.deadline.get_or_init(|| Instant::now() + self.timeout);
        tokio::time::sleep_until(*deadline).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll_once(stop: &Stop) -> Poll<()> {
        pin!(stop.overdue()).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn nothing_is_overdue_before_the_request_and_the_time_counts_from_it() {
        let token = CancellationToken::new();
        let stop = Stop::new(token.clone(), Duration::from_secs(3600));
        assert_eq!(poll_once(&stop), Poll::Pending);
        assert!(stop.deadline.get().is_none());
        token.cancel();
        // Dropped and asked again, as in select!: the time does not begin anew.
        assert_eq!(poll_once(&stop), Poll::Pending);
        let deadline = *stop.deadline.get().expect("the time runs");
        assert_eq!(poll_once(&stop), Poll::Pending);
        assert_eq!(stop.deadline.get(), Some(&deadline));
    }

    #[tokio::test]
    async fn without_any_time_it_is_overdue_at_once() {
        let token = CancellationToken::new();
        let stop = Stop::new(token.clone(), Duration::ZERO);
        token.cancel();
        stop.overdue().await;
    }
}
