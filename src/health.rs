//! Whether the server can do its work: shared by the writer, which knows, and `/readyz`, which tells.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// Shared state of health. Cloning shares it.
#[derive(Clone, Default)]
pub struct Health(Arc<State>);

#[derive(Default)]
struct State {
    writer: AtomicBool,
    stopping: AtomicBool,
    failed: Notify,
    warnings: Mutex<Vec<String>>,
}

impl Health {
    /// Whether the writer has a connection.
    pub fn set_writer(&self, connected: bool) {
        self.0.writer.store(connected, Ordering::Release);
    }

    pub fn has_writer(&self) -> bool {
        self.0.writer.load(Ordering::Acquire)
    }

    /// The server takes no new work.
    pub fn set_stopping(&self) {
        self.0.stopping.store(true, Ordering::Release);
    }

    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Acquire)
    }

    /// A part that everything depends on has died: the server must end, and somebody start it anew.
    pub fn fail(&self) {
        self.set_stopping();
        self.0.failed.notify_one();
    }

    /// Waits for [`Health::fail`].
    pub async fn failed(&self) {
        self.0.failed.notified().await;
    }

    pub fn is_ready(&self) -> bool {
        self.has_writer() && !self.is_stopping()
    }

    /// What an operator should know although the server works, such as weaker durability.
    pub fn set_warnings(&self, warnings: Vec<String>) {
        *self.0.warnings.lock().unwrap_or_else(PoisonError::into_inner) = warnings;
    }

    pub fn warnings(&self) -> Vec<String> {
        self.0.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
