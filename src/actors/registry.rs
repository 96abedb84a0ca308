//! The handle of the session registry: everything that the rest of the server asks of the push path.
//!
//! [`Registry`] is started once by the server and lives until the process ends; the actor behind it is in
//! `registry/actor.rs`.

mod actor;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use actix::{Actor, Addr, Arbiter, Message};
use tokio::sync::oneshot;

use crate::actors::queue::{NodeLoad, SessionQueue};
use crate::actors::session::{Attachment, SessionHandle, SessionIdentity, SessionInfo};
use crate::config::WebSocketConfig;
use crate::domain::ids::{LoginId, SessionId, UserId};
use crate::protocol::close::CloseReason;
use crate::protocol::frame::{Frame, Notification};

use actor::RegistryActor;

/// Batches handed over and not yet routed above which further ones are refused. The writer pauses long before.
const MAX_WAITING_BATCHES: usize = 4_096;
/// How much longer than its window [`Registry::stop`] waits for the last sockets.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// A session asks to be reachable.
#[derive(Message)]
#[rtype(result = "Result<(), AttachRefused>")]
pub struct Attach {
    pub identity: SessionIdentity,
    pub handle: SessionHandle,
}

/// Why a session may not attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachRefused {
    #[error("the user has too many sessions")]
    TooManySessions,
    #[error("the server is stopping")]
    Stopping,
}

/// The registry did not take a batch: too many wait, or it is gone. Its sessions need [`Registry::resync_all`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session registry takes no more notifications")]
pub struct HandoverRefused;

/// How many are connected. A session counts until its socket is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    pub sessions: usize,
    pub users: usize,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Notify(Vec<Notification>);

#[derive(Message)]
#[rtype(result = "()")]
struct Broadcast(Frame);

/// Close sessions at once: all of the node, all of one user, or those of some of a user's logins.
#[derive(Message)]
#[rtype(result = "()")]
struct CloseSessions {
    which: Which,
    reason: CloseReason,
}

enum Which {
    All,
    User(UserId),
    Logins(UserId, Vec<LoginId>),
}

/// The socket of a session is gone, or never came to be. Unknown sessions are ignored.
#[derive(Message)]
#[rtype(result = "()")]
struct SocketClosed {
    user: UserId,
    session: SessionId,
}

#[derive(Message)]
#[rtype(result = "Vec<SessionInfo>")]
struct ListSessions(UserId);

#[derive(Message)]
#[rtype(result = "bool")]
struct CloseSession {
    user: UserId,
    session: SessionId,
    reason: CloseReason,
}

#[derive(Message)]
#[rtype(result = "Counts")]
struct CountSessions;

#[derive(Message)]
#[rtype(result = "()")]
struct BeginStop {
    window: Duration,
    gone: oneshot::Sender<()>,
}

/// What was handed over and not yet routed.
#[derive(Default)]
struct Backlog {
    batches: AtomicUsize,
    receivers: AtomicUsize,
}

/// The handle. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    actor: Addr<RegistryActor>,
    backlog: Arc<Backlog>,
    node: Arc<NodeLoad>,
    next_session: AtomicI64,
    config: WebSocketConfig,
}

impl Registry {
    /// Starts the registry on a thread of its own. Needs a running actix system, and the metrics recorder before it.
    pub fn start(config: WebSocketConfig) -> Registry {
        let backlog = Arc::new(Backlog::default());
        let node = Arc::new(NodeLoad::new());
        let parts = (config.clone(), backlog.clone(), node.clone());
        let actor = RegistryActor::start_in_arbiter(&Arbiter::new().handle(), move |_| {
            let (config, backlog, node) = parts;
            RegistryActor::new(config, backlog, node)
        });
        Registry { inner: Arc::new(Inner { actor, backlog, node, next_session: AtomicI64::new(1), config }) }
    }

    /// False once the registry's thread has died: the server cannot push any more and should stop.
    pub fn is_running(&self) -> bool {
        self.inner.actor.connected()
    }

    /// Hands over the notifications of one commit. Never blocks; their order is kept, and that of the calls.
    ///
    /// # Errors
    /// [`HandoverRefused`] if 4,096 batches wait already or the registry is gone; the batch is lost then.
    #[allow(
        clippy::disallowed_methods,
        reason = "bounded by the counter here: the mailbox's own limit also counts SocketClosed, and a storm of \
                  disconnects must not refuse a commit's pushes"
    )]
    pub fn notify(&self, batch: Vec<Notification>) -> Result<(), HandoverRefused> {
        let backlog = &self.inner.backlog;
        if !self.inner.actor.connected() {
            return Err(HandoverRefused);
        }
        if backlog.batches.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING_BATCHES {
            backlog.batches.fetch_sub(1, Ordering::Relaxed);
            return Err(HandoverRefused);
        }
        let receivers = batch.iter().map(|notification| notification.receivers.len()).sum();
        backlog.receivers.fetch_add(receivers, Ordering::Relaxed);
        self.inner.actor.do_send(Notify(batch));
        Ok(())
    }

    /// Receivers handed over and not yet routed.
    pub fn backlog(&self) -> usize {
        self.inner.backlog.receivers.load(Ordering::Relaxed)
    }

    /// Bytes queued for sessions of this node.
    pub fn in_flight_bytes(&self) -> usize {
        self.inner.node.in_flight()
    }

    /// Sends a frame to every session of this node.
    pub fn broadcast(&self, frame: Frame) {
        self.send_always(Broadcast(frame));
    }

    /// Closes every session with [`CloseReason::Resync`]: clients come back and pull.
    pub fn resync_all(&self) {
        self.send_always(CloseSessions { which: Which::All, reason: CloseReason::Resync });
    }

    /// Makes a session reachable. It is from the moment of the answer on, until the [`Attachment`] is dropped.
    ///
    /// # Errors
    /// The user has too many sessions, or the server is stopping.
    pub async fn attach(&self, request: Attach) -> Result<Attachment, AttachRefused> {
        // The guard comes first: if this future is dropped while it waits, the registry is told all the same, and its
        // message cannot overtake the request.
        let attachment = Attachment { registry: self.clone(), queue: request.handle.queue.clone() };
        match self.inner.actor.send(request).await.unwrap_or(Err(AttachRefused::Stopping)) {
            Ok(()) => Ok(attachment),
            Err(refused) => {
                attachment.queue.discard();
                Err(refused)
            }
        }
    }

    /// Closes the user's sessions of these logins; `None`: all of them.
    pub fn close_logins(&self, user: UserId, logins: Option<Vec<LoginId>>, reason: CloseReason) {
        let which = logins.map_or(Which::User(user), |logins| Which::Logins(user, logins));
        self.send_always(CloseSessions { which, reason });
    }

    /// The user's open sessions, oldest first. Those that are being closed are left out.
    pub async fn list_sessions(&self, user: UserId) -> Vec<SessionInfo> {
        self.inner.actor.send(ListSessions(user)).await.unwrap_or_default()
    }

    /// Closes one session of the user. False if the user has no such open session.
    pub async fn close_session(&self, user: UserId, session: SessionId, reason: CloseReason) -> bool {
        self.inner.actor.send(CloseSession { user, session, reason }).await.unwrap_or(false)
    }

    /// Sessions and users of this node.
    pub async fn counts(&self) -> Counts {
        self.inner.actor.send(CountSessions).await.unwrap_or(Counts { sessions: 0, users: 0 })
    }

    /// Refuses new sessions, closes all others with [`CloseReason::Shutdown`] spread evenly over `window`, and returns
    /// when their sockets are gone, or two seconds after the window.
    pub async fn stop(&self, window: Duration) {
        let (gone, all_gone) = oneshot::channel();
        self.send_always(BeginStop { window, gone });
        if tokio::time::timeout(window + STOP_GRACE, all_gone).await.is_err() {
            tracing::warn!("some sockets outlived the stop window");
        }
    }

    /// A fresh queue, and with it a fresh session id.
    pub(super) fn new_queue(&self, user: UserId) -> Arc<SessionQueue> {
        let session = SessionId(self.inner.next_session.fetch_add(1, Ordering::Relaxed));
        Arc::new(SessionQueue::new(user, session, self.inner.config.max_in_flight_bytes, self.inner.node.clone()))
    }

    /// Nothing more is queued for the session. Only [`Attachment`] calls this and [`Registry::socket_closed`].
    pub(super) fn session_ended(&self, queue: &SessionQueue) {
        queue.end_without_close(Duration::from_millis(self.inner.config.stall_timeout_ms));
    }

    /// Once per attachment.
    pub(super) fn socket_closed(&self, queue: &SessionQueue) {
        self.session_ended(queue);
        self.send_always(SocketClosed { user: queue.user(), session: queue.session() });
    }

    /// For what must never be refused.
    #[allow(
        clippy::disallowed_methods,
        reason = "at most one SocketClosed per session; the others are rare, and losing one would leave a session open \
                  that must close"
    )]
    fn send_always<M>(&self, message: M)
    where
        M: Message<Result = ()> + Send + 'static,
        RegistryActor: actix::Handler<M>,
    {
        self.inner.actor.do_send(message);
    }
}
