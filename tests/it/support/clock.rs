//! A clock that tests move by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use nudge::clock::Clock;

/// A clock that a test sets; it stands still.
#[derive(Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    pub fn at(milliseconds: i64) -> ManualClock {
        ManualClock(Arc::new(AtomicI64::new(milliseconds)))
    }

    pub fn jump(&self, milliseconds: i64) {
        self.0.fetch_add(milliseconds, Ordering::SeqCst);
    }

    pub fn clock(&self) -> Clock {
        let time = self.0.clone();
        Clock::from_fn(move || time.load(Ordering::SeqCst))
    }
}
