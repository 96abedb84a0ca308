//! Waiting for what something else brings about, with a deadline.

use std::time::{Duration, Instant};

use super::app::PATIENCE;

/// Waits until a condition that something else brings about is true.
pub async fn eventually(what: &str, condition: impl AsyncFnMut() -> bool) {
    eventually_within(PATIENCE, what, condition).await;
}

/// [`eventually`], with a patience of the test's own.
pub async fn eventually_within(patience: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !condition().await {
        assert!(Instant::now() < deadline, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
