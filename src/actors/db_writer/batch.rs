//! Executing a batch in one transaction, and what happens when that fails (`design.md` section 4, "errors in a batch"
//! and "unknown outcome").

use std::time::{Duration, Instant};

use diesel::QueryResult;
use diesel::result::Error;
use tracing::{error, info, warn};

use super::command::{Entry, Verdict, Work};
use crate::actors::Registry;
use crate::clock::Clock;
use crate::config::Config;
use crate::db::connect::{Role, Source};
use crate::db::{Db, sequence};
use crate::error::AppError;
use crate::health::Health;
use crate::protocol::close::CloseReason;
use crate::service::member_cache::MemberCache;
use crate::service::run::{self, RunCommand};
use crate::service::token_cache::TokenCache;
use crate::service::{Locks, Outbox, Tx};

/// Longest pause between two attempts to reach the database.
const MAX_BACKOFF: Duration = Duration::from_secs(2);
/// A database that is silent for this long counts as away: the server is not ready.
const SILENCE_LIMIT: Duration = Duration::from_secs(5);
/// Longest wait for an answer of the database, above its own limit of 15 s for a statement: a database that is frozen,
/// or a network that swallows everything, answers never.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// The same for what takes no time at all on a database that works.
const SHORT_ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// A command that takes longer is worth a line in the log.
const SLOW_COMMAND: Duration = Duration::from_millis(100);

/// Everything that the writer keeps between batches.
pub struct Writer {
    pub source: Source,
    pub clock: Clock,
    pub config: Config,
    pub registry: Registry,
    pub health: Health,
    /// Name of this writer's row in `im_sequence`.
    pub row: String,
    /// Number of the last batch that was begun.
    pub batch: i64,
    pub db: Option<Db>,
    /// Who is in which group; emptied whenever a transaction did not commit.
    pub members: MemberCache,
    pub tokens: TokenCache,
}

/// Why a batch did not commit, or did not certainly commit.
enum Failure {
    /// Nothing was committed.
    NotCommitted(Error),
    /// The answer to COMMIT is missing. The outbox is what must leave if it did happen.
    Unknown(Error, Outbox),
}

impl Writer {
    /// Executes the commands, answers every caller and hands the notifications over.
    pub async fn process(&mut self, mut entries: Vec<Entry>) {
        self.wait_for_registry().await;
        match self.attempt(&mut entries).await {
            Ok(outbox) => self.conclude(entries, outbox),
            Err(failure) => self.recover(entries, failure).await,
        }
    }

    /// Overload slows senders down, it does not cut receivers.
    async fn wait_for_registry(&self) {
        while self.registry.backlog() > self.config.writer.max_registry_backlog {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn attempt(&mut self, entries: &mut [Entry]) -> Result<Outbox, Failure> {
        self.connect_for(entries).await.map_err(Failure::NotCommitted)?;
        let Some(mut db) = self.db.take() else { return Err(Failure::NotCommitted(Error::NotInTransaction)) };
        self.batch += 1;
        let started = Instant::now();
        let mut tx = Tx::new(&mut db, self.clock.now(), &self.config, &mut self.members);
        let outbox = while_ready(&self.health, async {
            execute(&mut tx, entries).await?;
            tx.finish(&self.row, self.batch).await
        });
        let outbox = outbox.await;
        metrics::histogram!("nudge_batch_size").record(entries.len() as f64);
        metrics::histogram!("nudge_batch_execute_seconds").record(started.elapsed().as_secs_f64());
        if outbox.is_err() {
            self.members.clear();
        }
        // The connection is only put back after a commit: whatever went wrong, its transaction ends with it.
        let outbox = outbox.map_err(Failure::NotCommitted)?;
        let committing = Instant::now();
        let committed = while_ready(&self.health, db.commit_batch()).await;
        metrics::histogram!("nudge_batch_commit_seconds").record(committing.elapsed().as_secs_f64());
        match committed {
            Ok(()) => {
                self.db = Some(db);
                Ok(outbox)
            }
            Err(error) => {
                self.members.clear();
                // The writer's row may have been written outside of the transaction, so it must not be asked.
                if Db::is_transaction_gone(&error) {
                    return Err(Failure::NotCommitted(error));
                }
                Err(Failure::Unknown(error, outbox))
            }
        }
    }

    /// After the commit: revoked tokens are forgotten, notifications leave, and then the answers.
    fn conclude(&self, entries: Vec<Entry>, outbox: Outbox) {
        self.tokens.forget(&outbox.users_with_revoked_tokens());
        if !outbox.notifications.is_empty() && self.registry.notify(outbox.notifications).is_err() {
            warn!("the registry cannot take a batch of notifications: all sessions must resync");
            self.registry.resync_all();
        }
        for (user, login) in outbox.ended_logins {
            self.registry.close_logins(user, login.map(|login| vec![login]), CloseReason::SignedOut);
        }
        for entry in entries {
            entry.answer(None);
        }
    }

    /// Nobody has been answered. First learn what happened, then run each command in a transaction of its own: what
    /// fails then fails alone.
    async fn recover(&mut self, entries: Vec<Entry>, failure: Failure) {
        let cause = match self.settle(failure).await {
            Ok(outbox) => return self.conclude(entries, outbox),
            Err(cause) => cause,
        };
        warn!(commands = entries.len(), error = %cause, "a batch failed, its commands run one by one");
        metrics::counter!("nudge_batches_failed_total").increment(1);
        for entry in entries {
            self.run_alone(entry).await;
        }
    }

    async fn run_alone(&mut self, entry: Entry) {
        if Instant::now() >= entry.deadline {
            return entry.answer(Some(AppError::Unavailable));
        }
        let mut entries = vec![entry];
        let settled = match self.attempt(&mut entries).await {
            Ok(outbox) => Ok(outbox),
            Err(failure) => self.settle(failure).await,
        };
        match settled {
            Ok(outbox) => self.conclude(entries, outbox),
            Err(cause) => {
                for entry in entries {
                    error!(kind = entry.kind, error = %cause, "a command failed");
                    entry.answer(Some(AppError::from_database(&cause)));
                }
            }
        }
    }

    /// What a failure came to: the outbox of a transaction that committed after all, or why it did not.
    async fn settle(&mut self, failure: Failure) -> Result<Outbox, Error> {
        match failure {
            Failure::NotCommitted(error) => Err(error),
            Failure::Unknown(error, outbox) => {
                warn!(error = %error, "the answer to a commit is missing");
                if self.was_committed().await { Ok(outbox) } else { Err(error) }
            }
        }
    }

    /// Whether the transaction of the current batch committed: its writer's row tells. Locking that row waits until
    /// the server has ended the old transaction. No batch starts before this is known.
    async fn was_committed(&mut self) -> bool {
        let row = self.row.clone();
        loop {
            self.connect(None).await;
            let Some(db) = self.db.as_mut() else { continue };
            match within(ANSWER_LIMIT, last_batch(db, &row)).await {
                Ok(number) => {
                    info!(batch = self.batch, committed = number >= self.batch, "the outcome of a commit is known");
                    return number >= self.batch;
                }
                Err(error) => {
                    warn!(error = %error, "the outcome of a commit is still unknown");
                    self.db = None;
                }
            }
        }
    }

    /// Connects unless connected; gives up when every one of the commands is past its deadline.
    async fn connect_for(&mut self, entries: &[Entry]) -> QueryResult<()> {
        let last = entries.iter().map(|entry| entry.deadline).max();
        self.connect(last).await;
        if self.db.is_some() { Ok(()) } else { Err(crate::db::no_answer()) }
    }

    /// Tries to connect, with growing pauses, until `until` (for ever without it).
    pub async fn connect(&mut self, until: Option<Instant>) {
        let mut pause = Duration::from_millis(20);
        while self.db.is_none() {
            self.health.set_writer(false);
            let opened = tokio::time::timeout(ANSWER_LIMIT, self.open()).await;
            match opened.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer"))) {
                Ok(db) => self.db = Some(db),
                Err(error) => {
                    warn!(error = format!("{error:#}"), "the database cannot be reached");
                    if until.is_some_and(|until| Instant::now() + pause >= until) {
                        return;
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(MAX_BACKOFF);
                }
            }
        }
        self.health.set_writer(true);
    }

    /// Opens a connection and lifts the counters, so that ids which somebody may have seen are never issued again.
    async fn open(&mut self) -> anyhow::Result<Db> {
        let mut db = self.source.connect(Role::Writer).await?;
        let now = self.clock.now();
        db.begin().await?;
        sequence::lift(&mut db, now).await?;
        let last_batch = sequence::register_writer(&mut db, &self.row, now).await?;
        db.commit().await?;
        // A node with a fixed name finds the row of its earlier life: its numbers go on.
        self.batch = self.batch.max(last_batch);
        Ok(db)
    }

    /// Keeps an idle connection alive, and notices that the database has gone.
    pub async fn ping(&mut self) {
        if let Some(db) = self.db.as_mut()
            && let Err(error) = within(SHORT_ANSWER_LIMIT, db.ping()).await
        {
            warn!(error = %error, "the writer lost its connection");
            self.db = None;
        }
        self.connect(Some(Instant::now())).await;
    }
}

async fn last_batch(db: &mut Db, row: &str) -> QueryResult<i64> {
    db.begin().await?;
    let number = sequence::lock_writer(db, row).await?;
    db.rollback().await?;
    Ok(number)
}

/// Waits for the end of a batch or of its commit. Meanwhile a silent database makes the server not ready.
async fn while_ready<T>(health: &Health, answer: impl Future<Output = QueryResult<T>>) -> QueryResult<T> {
    let mut answer = std::pin::pin!(answer);
    if let Ok(outcome) = tokio::time::timeout(SILENCE_LIMIT, &mut answer).await {
        return outcome;
    }
    warn!("the database is silent");
    health.set_writer(false);
    let outcome = within(ANSWER_LIMIT.saturating_sub(SILENCE_LIMIT), answer).await;
    health.set_writer(outcome.is_ok());
    outcome
}

/// Fails a wait for the database that takes longer than `limit`. Its connection must not be used again.
async fn within<T>(limit: Duration, answer: impl Future<Output = QueryResult<T>>) -> QueryResult<T> {
    tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| Err(crate::db::no_answer()))
}

/// Runs the commands in order: neighbours on the set-based path as one run, any other in a savepoint.
async fn execute(tx: &mut Tx<'_>, entries: &mut [Entry]) -> QueryResult<()> {
    tx.db.begin_batch().await?;
    let locking = Instant::now();
    tx.lock(first_locks(entries)).await?;
    metrics::histogram!("nudge_batch_lock_seconds").record(locking.elapsed().as_secs_f64());
    let mut rest = entries;
    while !rest.is_empty() {
        let count = rest.iter().take_while(|entry| entry.is_run()).count();
        let (now, later) = rest.split_at_mut(count.max(1));
        let started = Instant::now();
        if count > 0 {
            execute_run(tx, now).await?;
        } else if let [entry] = now {
            execute_single(tx, entry).await?;
        }
        observe(now, started.elapsed());
        rest = later;
    }
    Ok(())
}

/// What to lock before anything is read. Where only sends are in the batch, nothing: they check first and lock last.
/// Otherwise everything that the batch will need, since a lock taken later could be out of order.
fn first_locks(entries: &[Entry]) -> Locks {
    let early = entries.iter().fold(Locks::NONE, |locks, entry| locks.and(entry.early_locks()));
    if early == Locks::NONE {
        return Locks::NONE;
    }
    entries.iter().fold(early, |locks, entry| locks.and(entry.all_locks()))
}

async fn execute_run(tx: &mut Tx<'_>, entries: &mut [Entry]) -> QueryResult<()> {
    let commands: Vec<&RunCommand> = entries
        .iter()
        .filter_map(|entry| match &entry.work {
            Work::Run { command, .. } => Some(&**command),
            Work::Single(_) => None,
        })
        .collect();
    let outcomes = run::execute(tx, &commands).await?;
    for (entry, outcome) in entries.iter_mut().zip(outcomes) {
        if let Work::Run { answer, .. } = &mut entry.work {
            answer.set(outcome);
        }
    }
    Ok(())
}

async fn execute_single(tx: &mut Tx<'_>, entry: &mut Entry) -> QueryResult<()> {
    let Work::Single(single) = &mut entry.work else { return Ok(()) };
    let mark = tx.outbox_mark();
    tx.begin_command();
    tx.db.set_savepoint().await?;
    match single.execute(tx).await? {
        Verdict::Keep => tx.db.release_savepoint().await,
        Verdict::RollBack => {
            tx.discard_since(mark);
            tx.db.rollback_to_savepoint().await
        }
    }
}

fn observe(entries: &[Entry], elapsed: Duration) {
    let Some(first) = entries.first() else { return };
    metrics::histogram!("nudge_command_seconds", "kind" => first.kind)
        .record(elapsed.as_secs_f64() / entries.len() as f64);
    if elapsed > SLOW_COMMAND {
        warn!(kind = first.kind, commands = entries.len(), milliseconds = elapsed.as_millis(), "slow command");
    }
}
