//! What waits for the writer: commands with their deadline, their place in the limits, and the way back to the caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::sync::oneshot;

use super::limits::Permit;
use crate::error::AppError;
use crate::service::run::{RunAnswer, RunCommand};
use crate::service::{Locks, Tx};

const WAITING: u8 = 0;
const STARTED: u8 = 1;
const CANCELLED: u8 = 2;

/// Decides once, between writer and caller, whether a command runs or is given up.
#[derive(Clone, Default)]
pub struct Claim(Arc<AtomicU8>);

impl Claim {
    /// The writer takes the command; false when its caller has given up.
    pub fn start(&self) -> bool {
        let claimed = self.0.compare_exchange(WAITING, STARTED, Ordering::AcqRel, Ordering::Acquire);
        !matches!(claimed, Err(CANCELLED))
    }

    /// The caller gives up; false when the writer has taken the command.
    pub fn cancel(&self) -> bool {
        self.0.compare_exchange(WAITING, CANCELLED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A command in the writer's queue.
pub struct Entry {
    pub kind: &'static str,
    pub bytes: usize,
    /// Not begun after this instant.
    pub deadline: Instant,
    pub claim: Claim,
    pub work: Work,
    /// Given back when the entry is dropped, that is, when it is answered.
    pub _permit: Permit,
}

/// How a command is executed.
pub enum Work {
    /// On the set-based path, together with its neighbours.
    Run { command: Box<RunCommand>, answer: Answer<RunAnswer> },
    /// By itself, in a savepoint.
    Single(Box<dyn Single>),
}

/// An outcome that waits for the commit, and who is to get it.
pub struct Answer<T> {
    outcome: Option<Result<T, AppError>>,
    reply: oneshot::Sender<Result<T, AppError>>,
}

impl<T> Answer<T> {
    pub fn new(reply: oneshot::Sender<Result<T, AppError>>) -> Answer<T> {
        Answer { outcome: None, reply }
    }

    pub fn set(&mut self, outcome: Result<T, AppError>) {
        self.outcome = Some(outcome);
    }

    /// Gives the caller `error`, or without one the outcome; returns the code for the metrics.
    fn send(self, error: Option<AppError>) -> i32 {
        let outcome = match error {
            Some(error) => Err(error),
            None => self.outcome.unwrap_or_else(|| Err(AppError::Internal("a command has no outcome".into()))),
        };
        let code = outcome.as_ref().err().map_or(0, AppError::code);
        // The caller may be gone; what he asked for has happened all the same.
        let _ = self.reply.send(outcome);
        code
    }
}

/// A command that is executed by itself. It may run more than once: a batch that failed is run again.
pub trait Single: Send {
    fn locks(&self) -> Locks;
    /// Runs it and keeps the outcome. `Err` is a database error after which the transaction cannot go on.
    fn execute<'a>(&'a mut self, tx: &'a mut Tx<'_>) -> LocalBoxFuture<'a, Result<Verdict, diesel::result::Error>>;
    /// Answers the caller; returns the code for the metrics.
    fn answer(self: Box<Self>, error: Option<AppError>) -> i32;
}

/// Whether the changes of a single command stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Keep,
    RollBack,
}

/// A [`Single`] made of an async closure.
pub struct Verb<T, F> {
    pub locks: Locks,
    pub run: F,
    pub answer: Answer<T>,
}

impl<T, F> Single for Verb<T, F>
where
    T: Send,
    F: AsyncFn(&mut Tx<'_>) -> Result<T, AppError> + Send,
{
    fn locks(&self) -> Locks {
        self.locks
    }

    fn execute<'a>(&'a mut self, tx: &'a mut Tx<'_>) -> LocalBoxFuture<'a, Result<Verdict, diesel::result::Error>> {
        async move {
            let outcome = (self.run)(tx).await;
            let verdict = if outcome.is_ok() { Verdict::Keep } else { Verdict::RollBack };
            match outcome {
                Err(AppError::Database(error)) if !crate::db::is_unique_violation(&error) => return Err(error),
                Err(AppError::Database(error)) => self.answer.set(Err(AppError::from_database(&error))),
                other => self.answer.set(other),
            }
            Ok(verdict)
        }
        .boxed_local()
    }

    fn answer(self: Box<Self>, error: Option<AppError>) -> i32 {
        self.answer.send(error)
    }
}

impl Entry {
    pub fn is_run(&self) -> bool {
        matches!(self.work, Work::Run { .. })
    }

    /// Counters to lock before anything else.
    pub fn early_locks(&self) -> Locks {
        match &self.work {
            Work::Run { command, .. } => command.early_locks(),
            Work::Single(single) => single.locks(),
        }
    }

    /// Counters that it will lock at some time.
    pub fn all_locks(&self) -> Locks {
        match &self.work {
            Work::Run { command, .. } => command.all_locks(),
            Work::Single(single) => single.locks(),
        }
    }

    /// Answers the caller with the outcome, or with `error`.
    pub fn answer(self, error: Option<AppError>) {
        let code = match self.work {
            Work::Run { answer, .. } => answer.send(error),
            Work::Single(single) => single.answer(error),
        };
        metrics::counter!("nudge_commands_total", "kind" => self.kind, "code" => code.to_string()).increment(1);
    }
}
