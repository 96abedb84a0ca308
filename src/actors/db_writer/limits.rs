//! How many commands may wait for the writer: in all, and for one user.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::WriterConfig;
use crate::domain::ids::UserId;
use crate::error::AppError;

/// Counts commands that were accepted and not answered.
#[derive(Clone)]
pub struct Limits(Arc<Counts>);

struct Counts {
    max: usize,
    max_per_user: u32,
    all: AtomicUsize,
    by_user: Mutex<HashMap<UserId, u32>>,
}

/// The right to wait; given back on drop.
pub struct Permit {
    counts: Arc<Counts>,
    user: Option<UserId>,
}

impl Limits {
    pub fn new(config: &WriterConfig) -> Limits {
        Limits(Arc::new(Counts {
            max: config.max_waiting,
            max_per_user: config.max_waiting_per_user,
            all: AtomicUsize::new(0),
            by_user: Mutex::new(HashMap::new()),
        }))
    }

    /// Commands waiting now.
    pub fn waiting(&self) -> usize {
        self.0.all.load(Ordering::Relaxed)
    }

    /// Takes a place, for `user` if the command is somebody's.
    ///
    /// # Errors
    /// `TooManyRequests` when all places, or all of this user's, are taken.
    pub fn acquire(&self, user: Option<UserId>) -> Result<Permit, AppError> {
        let counts = &self.0;
        if counts.all.fetch_add(1, Ordering::AcqRel) >= counts.max {
            counts.all.fetch_sub(1, Ordering::AcqRel);
            return Err(AppError::TooManyRequests);
        }
        if let Some(user) = user {
            let mut by_user = counts.by_user.lock().unwrap_or_else(PoisonError::into_inner);
            let count = by_user.entry(user).or_default();
            if *count >= counts.max_per_user {
                drop(by_user);
                counts.all.fetch_sub(1, Ordering::AcqRel);
                return Err(AppError::TooManyRequests);
            }
            *count += 1;
        }
        Ok(Permit { counts: counts.clone(), user })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.counts.all.fetch_sub(1, Ordering::AcqRel);
        let Some(user) = self.user else { return };
        let mut by_user = self.counts.by_user.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_user.get_mut(&user) {
            *count -= 1;
            if *count == 0 {
                by_user.remove(&user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max_waiting: usize, max_waiting_per_user: u32) -> Limits {
        Limits::new(&WriterConfig { max_waiting, max_waiting_per_user, ..WriterConfig::default() })
    }

    #[test]
    fn places_come_back() {
        let limits = limits(2, 2);
        let first = limits.acquire(Some(UserId(1))).unwrap();
        let _second = limits.acquire(Some(UserId(1))).unwrap();
        assert!(limits.acquire(Some(UserId(2))).is_err());
        drop(first);
        assert!(limits.acquire(Some(UserId(2))).is_ok());
    }

    #[test]
    fn one_user_cannot_take_all_places() {
        let limits = limits(100, 3);
        let _held: Vec<_> = (0..3).map(|_| limits.acquire(Some(UserId(1))).unwrap()).collect();
        assert!(limits.acquire(Some(UserId(1))).is_err());
        assert!(limits.acquire(Some(UserId(2))).is_ok());
        assert_eq!(limits.waiting(), 3);
    }
}
