//! Tokens that were found good a moment ago, so that not every request of a busy client reads the database.
//!
//! What this process revokes is forgotten before whoever revoked it is answered (the writer does so after the commit).
//! What another process revokes, it cannot know: so an entry lives for `auth.token_cache_ms` at most. Servers that share
//! a database could forget at once too, when they tell each other of commits (`design.md` section 8).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::tokens::Identity;
use crate::db::tokens::TokenHash;
use crate::domain::ids::UserId;
use crate::error::AppError;

/// Tokens kept, about 100 bytes each; beyond it those whose time is over are forgotten, and then all.
const MAX_TOKENS: usize = 20_000;

/// The cache. Cloning shares it.
#[derive(Clone)]
pub struct TokenCache {
    life: Duration,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    /// Rises with every revocation.
    revocations: u64,
    tokens: HashMap<TokenHash, Entry>,
}

struct Entry {
    identity: Identity,
    read_at: Instant,
}

impl TokenCache {
    /// An empty cache; `life` 0 keeps nothing.
    pub fn new(life: Duration) -> TokenCache {
        TokenCache { life, known: Arc::default() }
    }

    /// Whom a token speaks for: from the cache, where the token has not expired at `now` (epoch milliseconds), or else
    /// as `read` finds it.
    ///
    /// # Errors
    /// Those of `read`; they are not kept.
    pub async fn get_or_read(
        &self,
        hash: &TokenHash,
        now: i64,
        read: impl Future<Output = Result<Identity, AppError>>,
    ) -> Result<Identity, AppError> {
        if let Some(identity) = self.get(hash, now) {
            return Ok(identity);
        }
        // The row may be read just before it is deleted, and arrive here when it has been forgotten already: it is kept
        // only if nothing was revoked meanwhile.
        let revocations = self.known().revocations;
        let read_at = Instant::now();
        let identity = read.await?;
        self.put(*hash, Entry { identity, read_at }, revocations);
        Ok(identity)
    }

    fn get(&self, hash: &TokenHash, now: i64) -> Option<Identity> {
        let known = self.known();
        let entry = known.tokens.get(hash)?;
        let is_good = entry.read_at.elapsed() < self.life && entry.identity.expires_time > now;
        is_good.then_some(entry.identity)
    }

    fn put(&self, hash: TokenHash, entry: Entry, revocations: u64) {
        let mut known = self.known();
        if self.life.is_zero() || known.revocations != revocations {
            return;
        }
        if known.tokens.len() >= MAX_TOKENS {
            known.tokens.retain(|_, entry| entry.read_at.elapsed() < self.life);
            if known.tokens.len() >= MAX_TOKENS {
                known.tokens.clear();
            }
        }
        known.tokens.insert(hash, entry);
    }

    /// Forgets every token of these users: some were revoked.
    pub fn forget(&self, users: &HashSet<UserId>) {
        if users.is_empty() {
            return;
        }
        let mut known = self.known();
        known.revocations += 1;
        known.tokens.retain(|_, entry| !users.contains(&entry.identity.user));
    }

    /// No code panics while it holds the lock.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::domain::ids::LoginId;

    const LONG: Duration = Duration::from_secs(3_600);

    fn hash(number: u64) -> TokenHash {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&number.to_be_bytes());
        hash
    }

    fn identity(user: i64) -> Identity {
        Identity { user: UserId(user), login: LoginId(user), expires_time: 1_000 }
    }

    /// Looks a token up that the database knows as this user's; whether the database was asked.
    async fn is_read(cache: &TokenCache, number: u64, user: i64, now: i64) -> bool {
        let asked = Cell::new(false);
        let read = async {
            asked.set(true);
            Ok(identity(user))
        };
        assert_eq!(cache.get_or_read(&hash(number), now, read).await.unwrap(), identity(user));
        asked.get()
    }

    #[actix_web::test]
    async fn a_token_is_read_once_until_it_expires() {
        let cache = TokenCache::new(LONG);
        assert!(is_read(&cache, 1, 7, 0).await);
        assert!(!is_read(&cache, 1, 7, 999).await);
        assert!(is_read(&cache, 1, 7, 1_000).await);
        assert!(is_read(&cache, 2, 7, 0).await);
    }

    #[actix_web::test]
    async fn a_revocation_forgets_the_tokens_of_its_user_only() {
        let cache = TokenCache::new(LONG);
        for (number, user) in [(1, 7), (2, 7), (3, 8)] {
            is_read(&cache, number, user, 0).await;
        }
        cache.forget(&HashSet::from([UserId(7)]));
        assert!(is_read(&cache, 1, 7, 0).await);
        assert!(is_read(&cache, 2, 7, 0).await);
        assert!(!is_read(&cache, 3, 8, 0).await);
    }

    #[actix_web::test]
    async fn what_was_read_just_before_a_revocation_is_not_kept_after_it() {
        let cache = TokenCache::new(LONG);
        let read = async {
            let row = identity(7);
            cache.forget(&HashSet::from([UserId(7)]));
            Ok(row)
        };
        cache.get_or_read(&hash(1), 0, read).await.unwrap();
        assert!(is_read(&cache, 1, 7, 0).await, "a revoked token stayed in the cache");
    }

    #[actix_web::test]
    async fn an_entry_lives_no_longer_than_it_may() {
        for life in [Duration::ZERO, Duration::from_nanos(1)] {
            let cache = TokenCache::new(life);
            assert!(is_read(&cache, 1, 7, 0).await);
            assert!(is_read(&cache, 1, 7, 0).await);
        }
    }

    #[actix_web::test]
    async fn the_cache_stays_bounded() {
        let cache = TokenCache::new(LONG);
        for number in 0..MAX_TOKENS as u64 + 10 {
            is_read(&cache, number, 7, 0).await;
        }
        assert!(cache.known().tokens.len() <= MAX_TOKENS);
        assert!(!is_read(&cache, MAX_TOKENS as u64 + 9, 7, 0).await, "the newest is kept");
    }
}
