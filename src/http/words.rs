//! The sensitive words as this server knows them: in memory, read anew when they have changed. A change made through this
//! server counts for the next send after its answer; one made through another within a second.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tracing::warn;

use crate::actors::db_reader::DbReaders;
use crate::domain::content::{Content, ContentType};
use crate::error::AppError;
use crate::service::words::{self, Version, WordList};

/// How long the words are believed to be unchanged.
const TRUST: Duration = Duration::from_secs(1);

/// How long a send waits for those who read words that have changed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The words in force.
#[derive(Default)]
pub struct SensitiveWords {
    known: RwLock<Option<Known>>,
    /// Changes made through this server.
    changes: AtomicU64,
    /// Held by whoever looks for changes, so that one request does and the others wait.
    looking: Mutex<()>,
}

#[derive(Clone)]
struct Known {
    list: Arc<WordList>,
    version: Version,
    /// When they were last seen to be unchanged, and how many changes there had been.
    checked: Instant,
    changes: u64,
}

impl SensitiveWords {
    /// Marks a text that holds a sensitive word. Other contents are not looked at.
    ///
    /// # Errors
    /// The words were never read, and the database does not answer.
    pub async fn mark(&self, readers: &DbReaders, kind: i32, content: &mut Content) -> Result<(), AppError> {
        if kind != ContentType::Text.number() {
            return Ok(());
        }
        let list = self.current(readers).await?;
        if content.text().is_some_and(|text| list.is_in(text)) {
            content.mark_sensitive();
        }
        Ok(())
    }

    /// The words have changed: they are looked at again before they are used.
    pub fn forget(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    fn known(&self) -> Option<Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, known: Known) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(known);
    }

    /// What is known, if no change is known that came later.
    fn unchanged(&self) -> Option<Known> {
        let changes = self.changes.load(Ordering::Acquire);
        self.known().filter(|known| known.changes == changes)
    }

    fn fresh(&self) -> Option<Arc<WordList>> {
        self.unchanged().filter(|known| known.checked.elapsed() < TRUST).map(|known| known.list)
    }

    async fn current(&self, readers: &DbReaders) -> Result<Arc<WordList>, AppError> {
        if let Some(list) = self.fresh() {
            return Ok(list);
        }
        let looking = match (self.looking.try_lock(), self.unchanged()) {
            (Ok(looking), _) => looking,
            // Somebody looks whether another server has changed them: nobody needs to wait for that.
            (Err(_), Some(known)) => return Ok(known.list),
            (Err(_), None) => {
                let looking = tokio::time::timeout(PATIENCE, self.looking.lock()).await;
                looking.map_err(|_| AppError::Unavailable)?
            }
        };
        if let Some(list) = self.fresh() {
            return Ok(list);
        }
        let list = self.refresh(readers).await;
        drop(looking);
        list
    }

    async fn refresh(&self, readers: &DbReaders) -> Result<Arc<WordList>, AppError> {
        // From before the look on, so that what happens meanwhile leads to another one.
        let (checked, changes) = (Instant::now(), self.changes.load(Ordering::Acquire));
        let known = self.known();
        let found = match (look(readers, known.as_ref()).await, known) {
            (Ok((version, list)), _) => Known { list, version, checked, changes },
            // Old words are better than none, and than no messages.
            (Err(error), Some(known)) => {
                warn!(error = %error, "sensitive words cannot be read, those known before are used");
                Known { checked: Instant::now(), changes, ..known }
            }
            (Err(error), None) => return Err(error),
        };
        self.keep(found.clone());
        Ok(found.list)
    }
}

/// The words as they are now: those that are known, if their version is still the same.
async fn look(readers: &DbReaders, known: Option<&Known>) -> Result<(Version, Arc<WordList>), AppError> {
    if let Some(known) = known {
        let version = readers.run(async |db| Ok(words::version(db).await?)).await?;
        if version == known.version {
            return Ok((version, known.list.clone()));
        }
    }
    let (version, words) = readers.run(async |db| Ok(words::load(db).await?)).await?;
    let built = tokio::task::spawn_blocking(move || WordList::build(&words)).await;
    let built = built.map_err(|error| AppError::Internal(error.to_string()))?;
    let list = built.map_err(|error| AppError::Internal(error.to_string()))?;
    Ok((version, Arc::new(list)))
}
