//! Limits that live in memory and are bounded themselves: failed sign-ins, registrations, typing, password hashing.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Semaphore;

use crate::error::AppError;

/// Entries of one table; beyond it the table forgets what is over, and then somebody at random.
const MAX_ENTRIES: usize = 20_000;
/// Passwords hashed at one time: each takes a core and 19 MiB.
const PARALLEL_HASHES: usize = 2;
/// Requests that wait for their password to be hashed before further ones get code 429.
const WAITING_HASHES: usize = 64;

/// Counts events by key over a window that begins with the first of them.
pub struct EventCounter<K> {
    window_ms: i64,
    counts: Mutex<HashMap<K, (u32, i64)>>,
}

impl<K: Eq + Hash + Clone> EventCounter<K> {
    pub fn new(window_ms: i64) -> Self {
        EventCounter { window_ms, counts: Mutex::new(HashMap::new()) }
    }

    /// Events of this key in the window that holds `now`.
    pub fn count(&self, key: &K, now: i64) -> u32 {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(key).filter(|(_, start)| self.holds(*start, now)).map_or(0, |(count, _)| *count)
    }

    /// Notes an event; how many the window holds now.
    pub fn add(&self, key: K, now: i64) -> u32 {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MAX_ENTRIES && !counts.contains_key(&key) {
            counts.retain(|_, (_, start)| self.holds(*start, now));
            while counts.len() >= MAX_ENTRIES {
                let Some(somebody) = counts.keys().next().cloned() else { break };
                counts.remove(&somebody);
            }
        }
        let entry = counts.entry(key).or_insert((0, now));
        if !self.holds(entry.1, now) {
            *entry = (0, now);
        }
        entry.0 = entry.0.saturating_add(1);
        entry.0
    }

    /// Whether a window that began at `start` goes on. One that a clock which was ahead has begun is over.
    fn holds(&self, start: i64, now: i64) -> bool {
        (0..self.window_ms).contains(&(now - start))
    }

    pub fn forget(&self, key: &K) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// Runs password hashing off the async threads, a few at a time.
pub struct PasswordWorkers {
    running: Semaphore,
    waiting: Semaphore,
}

impl Default for PasswordWorkers {
    fn default() -> Self {
        PasswordWorkers { running: Semaphore::new(PARALLEL_HASHES), waiting: Semaphore::new(WAITING_HASHES) }
    }
}

impl PasswordWorkers {
    /// Runs `work` on a blocking thread.
    ///
    /// # Errors
    /// `TooManyRequests` when too many wait already.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, AppError> {
        let _waiting = self.waiting.try_acquire().map_err(|_| AppError::TooManyRequests)?;
        let _running = self.running.acquire().await.map_err(|_| AppError::Unavailable)?;
        let result = tokio::task::spawn_blocking(work).await;
        result.map_err(|error| AppError::Internal(format!("password worker: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends() {
        let counter = EventCounter::new(1_000);
        assert_eq!((counter.add("a", 0), counter.add("a", 999)), (1, 2));
        assert_eq!(counter.count(&"a", 1_000), 0);
        assert_eq!(counter.add("a", 1_000), 1);
    }

    #[test]
    fn a_window_that_began_in_the_future_is_over() {
        let counter = EventCounter::new(1_000);
        counter.add("a", 1_000_000);
        assert_eq!((counter.count(&"a", 5), counter.add("a", 5)), (0, 1));
    }

    #[test]
    fn a_table_stays_bounded() {
        let counter = EventCounter::new(i64::MAX);
        for key in 0..MAX_ENTRIES + 100 {
            counter.add(key, 0);
        }
        assert!(counter.counts.lock().unwrap().len() <= MAX_ENTRIES);
    }
}
