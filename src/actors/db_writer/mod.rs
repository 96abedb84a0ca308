//! The DB writer: owns the one connection on which transactions begin. Started once, on a thread of its own; it ends
//! with the process. Commands wait in a bounded queue, many are executed in one transaction, and after the commit
//! the callers get their answers and the registry the notifications (`design.md` sections 2 and 4).

mod batch;
mod command;
mod limits;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use actix::{Actor, ActorContext, ActorFutureExt, Addr, Arbiter, AsyncContext, Context, Handler, Message, WrapFuture};
use tokio::sync::oneshot;

use self::batch::Writer;
use self::command::{Answer, Claim, Entry, Single, Verb, Work};
use self::limits::{Limits, Permit};
use crate::actors::Registry;
use crate::clock::Clock;
use crate::config::{Config, WriterConfig};
use crate::db::connect::Source;
use crate::domain::group_message::GroupMessage;
use crate::domain::ids::UserId;
use crate::domain::private_message::PrivateMessage;
use crate::error::AppError;
use crate::health::Health;
use crate::service::conversation_reads::ReadReport;
use crate::service::group_messages::GroupDraft;
use crate::service::member_cache::MemberCache;
use crate::service::private_messages::PrivateDraft;
use crate::service::run::{RunAnswer, RunCommand};
use crate::service::token_cache::TokenCache;
use crate::service::{Locks, Tx};

/// Interval at which an idle connection is used: well under the server's idle limit of ten seconds.
const PING_INTERVAL: Duration = Duration::from_secs(4);
/// How long a caller waits for a command that was begun before its deadline.
const GRACE: Duration = Duration::from_secs(10);

/// A command for the queue.
#[derive(Message)]
#[rtype(result = "()")]
struct Submit(Entry);

/// Take what waits and execute it.
#[derive(Message)]
#[rtype(result = "()")]
struct Flush;

/// Answer when everything submitted before is done, and take nothing more.
#[derive(Message)]
#[rtype(result = "()")]
struct Drain(oneshot::Sender<()>);

/// The rest of the server's way to the writer.
#[derive(Clone)]
pub struct DbWriter {
    address: Addr<DbWriterActor>,
    limits: Limits,
    config: WriterConfig,
    tokens: TokenCache,
}

impl DbWriter {
    /// Starts the writer; it connects by itself, and again whenever the connection is lost.
    pub fn start(
        source: Source,
        clock: Clock,
        config: &Config,
        registry: Registry,
        health: Health,
        node: &str,
    ) -> DbWriter {
        let limits = Limits::new(&config.writer);
        let writer_config = config.writer.clone();
        let row = format!("writer:{node}");
        let tokens = TokenCache::new(Duration::from_millis(config.auth.token_cache_ms));
        let config = config.clone();
        let writer = Writer {
            source,
            clock,
            config,
            registry,
            health,
            row,
            batch: 0,
            db: None,
            members: MemberCache::default(),
            tokens: tokens.clone(),
        };
        let address = DbWriterActor::start_in_arbiter(&Arbiter::new().handle(), move |_| DbWriterActor {
            writer: Some(writer),
            queue: VecDeque::new(),
            is_flushing: false,
            draining: None,
        });
        DbWriter { address, limits, config: writer_config, tokens }
    }

    /// Commands that wait or run.
    pub fn waiting(&self) -> usize {
        self.limits.waiting()
    }

    /// Tokens that are known to be good; the writer takes those out that it revokes.
    pub fn tokens(&self) -> &TokenCache {
        &self.tokens
    }

    /// False when the writer's actor has died, which only a defect can cause.
    pub fn is_running(&self) -> bool {
        self.address.connected()
    }

    /// Sends a private message, together with whatever else waits.
    ///
    /// # Errors
    /// The refusal of a rule; `TooManyRequests`; `Unavailable` when the deadline passed: repeating is safe.
    pub async fn send_private(&self, draft: PrivateDraft) -> Result<PrivateMessage, AppError> {
        let sender = draft.sender;
        match self.run_command(sender, RunCommand::SendPrivate(draft)).await? {
            RunAnswer::SentPrivate(message) => Ok(message),
            _ => Err(AppError::Internal("a send was answered as something else".into())),
        }
    }

    /// Sends a group message, together with whatever else waits.
    ///
    /// # Errors
    /// As [`DbWriter::send_private`].
    pub async fn send_group(&self, draft: GroupDraft) -> Result<GroupMessage, AppError> {
        let sender = draft.sender;
        match self.run_command(sender, RunCommand::SendGroup(draft)).await? {
            RunAnswer::SentGroup(message) => Ok(message),
            _ => Err(AppError::Internal("a send was answered as something else".into())),
        }
    }

    /// Reports a read position, together with whatever else waits.
    ///
    /// # Errors
    /// As [`DbWriter::send_private`].
    pub async fn report_read(&self, report: ReadReport) -> Result<(), AppError> {
        self.run_command(report.reader, RunCommand::ReportRead(report)).await.map(|_| ())
    }

    async fn run_command(&self, user: UserId, command: RunCommand) -> Result<RunAnswer, AppError> {
        let permit = self.limits.acquire(Some(user))?;
        let (reply, answer) = oneshot::channel();
        let (kind, bytes) = (command.kind(), command.bytes());
        let work = Work::Run { command: Box::new(command), answer: Answer::new(reply) };
        self.submit(kind, bytes, permit, work, answer).await
    }

    /// Executes a verb by itself, in its place among the others. `user` is who asks, for the limits; `locks` are the
    /// counters it needs. The verb may run more than once: only its last outcome counts.
    ///
    /// # Errors
    /// As [`DbWriter::send_private`].
    pub async fn run<T, F>(
        &self,
        user: Option<UserId>,
        kind: &'static str,
        locks: Locks,
        verb: F,
    ) -> Result<T, AppError>
    where
        T: Send + 'static,
        F: AsyncFn(&mut Tx<'_>) -> Result<T, AppError> + Send + 'static,
    {
        let permit = self.limits.acquire(user)?;
        let (reply, answer) = oneshot::channel();
        let single: Box<dyn Single> = Box::new(Verb { locks, run: verb, answer: Answer::new(reply) });
        self.submit(kind, 512, permit, Work::Single(single), answer).await
    }

    async fn submit<T>(
        &self,
        kind: &'static str,
        bytes: usize,
        permit: Permit,
        work: Work,
        mut answer: oneshot::Receiver<Result<T, AppError>>,
    ) -> Result<T, AppError> {
        let patience = Duration::from_millis(self.config.deadline_ms);
        let claim = Claim::default();
        let entry =
            Entry { kind, bytes, deadline: Instant::now() + patience, claim: claim.clone(), work, _permit: permit };
        self.address.try_send(Submit(entry)).map_err(|_| AppError::TooManyRequests)?;
        let gone = |_| AppError::Unavailable;
        if let Ok(outcome) = tokio::time::timeout(patience, &mut answer).await {
            return outcome.map_err(gone)?;
        }
        if claim.cancel() {
            return Err(AppError::Unavailable);
        }
        // It is being executed: its outcome is worth a little more waiting.
        match tokio::time::timeout(GRACE, answer).await {
            Ok(outcome) => outcome.map_err(gone)?,
            Err(_) => Err(AppError::Unavailable),
        }
    }

    /// Waits until everything submitted so far is answered; later commands are refused.
    pub async fn drain(&self) {
        let (done, wait) = oneshot::channel();
        if self.address.send(Drain(done)).await.is_ok() {
            let _ = wait.await;
        }
    }
}

struct DbWriterActor {
    /// Away while a batch is executed.
    writer: Option<Writer>,
    queue: VecDeque<Entry>,
    is_flushing: bool,
    draining: Option<oneshot::Sender<()>>,
}

impl DbWriterActor {
    /// Does something with the connection while the mailbox waits.
    fn with_writer(&mut self, ctx: &mut Context<Self>, work: impl AsyncFnOnce(&mut Writer) + 'static) {
        let Some(mut writer) = self.writer.take() else { return };
        let work = async move {
            work(&mut writer).await;
            writer
        };
        ctx.wait(work.into_actor(self).map(|writer, actor, ctx| {
            actor.writer = Some(writer);
            actor.flush_soon(ctx);
        }));
    }

    fn flush_soon(&mut self, ctx: &mut Context<Self>) {
        self.is_flushing = !self.queue.is_empty();
        if self.is_flushing {
            ctx.notify(Flush);
        } else if let Some(done) = self.draining.take() {
            let _ = done.send(());
            ctx.stop();
        }
    }

    /// The next batch: what waits, up to the limits, without what is past its deadline or given up.
    fn take_batch(&mut self, config: &WriterConfig) -> Vec<Entry> {
        let now = Instant::now();
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < config.max_batch && bytes < config.max_batch_bytes {
            let Some(entry) = self.queue.pop_front() else { break };
            if now >= entry.deadline {
                entry.answer(Some(AppError::Unavailable));
            } else if entry.claim.start() {
                bytes += entry.bytes;
                batch.push(entry);
            }
        }
        batch
    }
}

impl Actor for DbWriterActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let capacity = self.writer.as_ref().map_or(0, |writer| writer.config.writer.max_waiting);
        ctx.set_mailbox_capacity(capacity.max(16));
        self.with_writer(ctx, async |writer| writer.connect(Some(Instant::now())).await);
        ctx.run_interval(PING_INTERVAL, |actor, ctx| {
            actor.with_writer(ctx, async |writer| writer.ping().await);
        });
    }
}

impl Handler<Submit> for DbWriterActor {
    type Result = ();

    fn handle(&mut self, Submit(entry): Submit, ctx: &mut Self::Context) {
        if self.draining.is_some() {
            return entry.answer(Some(AppError::Unavailable));
        }
        self.queue.push_back(entry);
        if !self.is_flushing {
            self.flush_soon(ctx);
        }
    }
}

impl Handler<Flush> for DbWriterActor {
    type Result = ();

    fn handle(&mut self, _: Flush, ctx: &mut Self::Context) {
        let Some(config) = self.writer.as_ref().map(|writer| writer.config.writer.clone()) else { return };
        let batch = self.take_batch(&config);
        if batch.is_empty() {
            return self.flush_soon(ctx);
        }
        self.with_writer(ctx, async move |writer| writer.process(batch).await);
    }
}

impl Handler<Drain> for DbWriterActor {
    type Result = ();

    fn handle(&mut self, Drain(done): Drain, ctx: &mut Self::Context) {
        self.draining = Some(done);
        if !self.is_flushing {
            self.flush_soon(ctx);
        }
    }
}
