//! The DB readers: a small pool of connections for pulls, lists and checks that write nothing. Each is an actor on a
//! thread of its own; they are started once and end with the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix::{Actor, ActorFutureExt, Addr, Arbiter, AsyncContext, Context, Handler, Message, WrapFuture};
use diesel::result::Error;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::sync::oneshot;
use tracing::{error, warn};

use crate::config::DatabaseConfig;
use crate::db::connect::{Role, Source};
use crate::db::{Db, no_answer};
use crate::error::AppError;

/// Interval at which an idle connection is used, so that a server's idle limit does not close it.
const PING_INTERVAL: Duration = Duration::from_secs(60);
/// Longest wait for an answer of the database, above its own limit of 10 s for a statement.
const ANSWER_LIMIT: Duration = Duration::from_secs(12);
/// How long a caller waits for a read that was begun before its deadline.
const GRACE: Duration = Duration::from_secs(10);

/// A read that waits.
#[derive(Message)]
#[rtype(result = "()")]
struct Read(Box<dyn Work>);

/// The rest of the server's way to the readers.
#[derive(Clone)]
pub struct DbReaders {
    pool: Arc<[Reader]>,
    max_waiting: usize,
    deadline: Duration,
}

#[derive(Clone)]
struct Reader {
    address: Addr<DbReaderActor>,
    waiting: Arc<AtomicUsize>,
}

/// A place in a reader's queue; given back on drop.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A read whose result type is known to its caller only.
trait Work: Send {
    fn is_late(&self) -> bool;
    /// Runs it and keeps the outcome; `Err` is a database error.
    fn execute<'a>(&'a mut self, db: &'a mut Db) -> LocalBoxFuture<'a, Result<(), Error>>;
    /// Answers the caller with the outcome, or with `error`.
    fn answer(self: Box<Self>, error: Option<AppError>);
}

struct Query<T, F> {
    run: F,
    outcome: Option<Result<T, AppError>>,
    reply: oneshot::Sender<Result<T, AppError>>,
    deadline: Instant,
    place: Place,
}

impl<T, F> Work for Query<T, F>
where
    T: Send,
    F: AsyncFn(&mut Db) -> Result<T, AppError> + Send,
{
    fn is_late(&self) -> bool {
        self.reply.is_closed() || Instant::now() >= self.deadline
    }

    fn execute<'a>(&'a mut self, db: &'a mut Db) -> LocalBoxFuture<'a, Result<(), Error>> {
        async move {
            match (self.run)(db).await {
                Err(AppError::Database(error)) => return Err(error),
                outcome => self.outcome = Some(outcome),
            }
            Ok(())
        }
        .boxed_local()
    }

    fn answer(self: Box<Self>, error: Option<AppError>) {
        let Query { outcome, reply, place, .. } = *self;
        let outcome = match error {
            Some(error) => Err(error),
            None => outcome.unwrap_or_else(|| Err(AppError::Internal("a read has no outcome".into()))),
        };
        // First, or the caller's next read could take this reader for busy and wait behind another that is.
        drop(place);
        let _ = reply.send(outcome);
    }
}

impl DbReaders {
    /// Starts the pool; each reader connects when it has something to read.
    pub fn start(source: &Source, config: &DatabaseConfig) -> DbReaders {
        let mut pool = Vec::with_capacity(config.readers);
        for _ in 0..config.readers {
            let source = source.clone();
            let capacity = config.max_waiting_reads;
            let address = DbReaderActor::start_in_arbiter(&Arbiter::new().handle(), move |_| DbReaderActor {
                reader: Some(Connected { source, db: None }),
                capacity,
            });
            pool.push(Reader { address, waiting: Arc::default() });
        }
        DbReaders {
            pool: pool.into(),
            max_waiting: config.max_waiting_reads,
            deadline: Duration::from_millis(config.read_deadline_ms),
        }
    }

    /// Runs a read on the reader with the shortest queue. It may run twice: again when the connection was lost.
    ///
    /// # Errors
    /// Whatever the read refuses; `TooManyRequests` when the queue is full; `Unavailable` when the database does not
    /// answer within the deadline.
    pub async fn run<T, F>(&self, read: F) -> Result<T, AppError>
    where
        T: Send + 'static,
        F: AsyncFn(&mut Db) -> Result<T, AppError> + Send + 'static,
    {
        let reader = self.pool.iter().min_by_key(|reader| reader.waiting.load(Ordering::Relaxed));
        let reader = reader.ok_or(AppError::Unavailable)?;
        if reader.waiting.fetch_add(1, Ordering::AcqRel) >= self.max_waiting {
            reader.waiting.fetch_sub(1, Ordering::AcqRel);
            return Err(AppError::TooManyRequests);
        }
        let place = Place(reader.waiting.clone());
        let (reply, answer) = oneshot::channel();
        let deadline = Instant::now() + self.deadline;
        let query = Query { run: read, outcome: None, reply, deadline, place };
        reader.address.try_send(Read(Box::new(query))).map_err(|_| AppError::TooManyRequests)?;
        match tokio::time::timeout(self.deadline + GRACE, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(AppError::Unavailable),
        }
    }
}

struct Connected {
    source: Source,
    db: Option<Db>,
}

impl Connected {
    async fn serve(&mut self, mut work: Box<dyn Work>) {
        if work.is_late() {
            return work.answer(Some(AppError::Unavailable));
        }
        let mut outcome = self.attempt(&mut *work).await;
        if outcome.is_err() && !work.is_late() {
            // The connection may have broken long ago: that says nothing about the database of now. Not every driver
            // tells such errors from others.
            outcome = self.attempt(&mut *work).await;
        }
        match outcome {
            Ok(()) => work.answer(None),
            Err(error) => fail(work, &error),
        }
    }

    async fn attempt(&mut self, work: &mut dyn Work) -> Result<(), Error> {
        let mut db = match self.db.take() {
            Some(db) => db,
            None => self.source.connect(Role::Reader).await.map_err(|error| {
                warn!(error = format!("{error:#}"), "a reader cannot reach the database");
                no_answer()
            })?,
        };
        // Put back only after a success: a connection whose statement failed is not worth the doubt.
        let started = Instant::now();
        let executed = tokio::time::timeout(ANSWER_LIMIT, work.execute(&mut db)).await;
        metrics::histogram!("nudge_read_seconds").record(started.elapsed().as_secs_f64());
        executed.unwrap_or_else(|_| Err(no_answer()))?;
        self.db = Some(db);
        Ok(())
    }

    async fn ping(&mut self) {
        if let Some(db) = self.db.as_mut()
            && !matches!(tokio::time::timeout(ANSWER_LIMIT, db.ping()).await, Ok(Ok(())))
        {
            self.db = None;
        }
    }
}

fn fail(work: Box<dyn Work>, error: &Error) {
    error!(error = %error, "a read failed");
    work.answer(Some(AppError::from_database(error)));
}

struct DbReaderActor {
    /// Away while a read runs.
    reader: Option<Connected>,
    capacity: usize,
}

impl DbReaderActor {
    fn with_reader(&mut self, ctx: &mut Context<Self>, work: impl AsyncFnOnce(&mut Connected) + 'static) {
        let Some(mut reader) = self.reader.take() else { return };
        let work = async move {
            work(&mut reader).await;
            reader
        };
        ctx.wait(work.into_actor(self).map(|reader, actor, _| actor.reader = Some(reader)));
    }
}

impl Actor for DbReaderActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(self.capacity.max(16));
        ctx.run_interval(PING_INTERVAL, |actor, ctx| actor.with_reader(ctx, async |reader| reader.ping().await));
    }
}

impl Handler<Read> for DbReaderActor {
    type Result = ();

    fn handle(&mut self, Read(work): Read, ctx: &mut Self::Context) {
        self.with_reader(ctx, async move |reader| reader.serve(work).await);
    }
}
