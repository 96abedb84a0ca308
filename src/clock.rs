//! The wall clock, injected so that tests can make it jump. Nothing relies on it for order: see `service::Tx`.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells milliseconds since 1970.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// The clock of this machine.
    pub fn system() -> Clock {
        Clock::from_fn(|| {
            let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
        })
    }

    pub fn from_fn(now: impl Fn() -> i64 + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    pub fn now(&self) -> i64 {
        (self.0)()
    }
}
