//! Refreshes that run one after the other, and that waiters share.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Mutex;

/// Runs refreshes. A waiter needs none of its own if one began after the waiter arrived.
#[derive(Default)]
pub(super) struct SharedRefresh {
    /// Number of refreshes that have begun.
    begun: AtomicU64,
    has_completed: AtomicBool,
    /// Held while a refresh runs.
    last: Mutex<CompletedRefresh>,
}

/// The refresh that was completed last.
#[derive(Default)]
struct CompletedRefresh {
    number: u64,
    result: bool,
}

impl SharedRefresh {
    /// Whether a refresh was ever completed.
    pub(super) fn has_completed(&self) -> bool {
        self.has_completed.load(Ordering::Acquire)
    }

    /// Runs a refresh, or waits for one that begins from now on. Returns its result.
    pub(super) async fn run(&self, refresh: impl Future<Output = bool>) -> bool {
        let arrived = self.begun.load(Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if last.number > arrived {
            return last.result;
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let result = refresh.await;
        *last = CompletedRefresh { number, result };
        self.has_completed.store(true, Ordering::Release);
        result
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::future::join_all;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn waiters_share_a_refresh_that_began_after_they_arrived() {
        let (shared, open) = (SharedRefresh::default(), Notify::new());
        let count = Cell::new(0);
        let refresh = || async {
            count.set(count.get() + 1);
            open.notified().await;
            true
        };
        assert!(!shared.has_completed());
        let waiters = join_all((0..10).map(|_| shared.run(refresh())));
        let opener = async {
            // The first one runs. It began before the others arrived, so they share a second one.
            for _ in 0..2 {
                open.notify_one();
                tokio::task::yield_now().await;
            }
        };
        let (results, ()) = tokio::join!(waiters, opener);
        assert_eq!(results, [true; 10]);
        assert_eq!(count.get(), 2);
        assert!(shared.has_completed());
        open.notify_one();
        assert!(shared.run(refresh()).await);
        assert_eq!(count.get(), 3);
    }
}
