//! What the rest of the push path knows about a session: who it is, how to close it, and the guard that says when it
//! is gone. The actor itself is in `transport`.

use std::net::IpAddr;
use std::sync::Arc;

use actix::{Message, Recipient};

use crate::actors::queue::{Ending, SessionQueue};
use crate::actors::registry::Registry;
use crate::domain::ids::{LoginId, SessionId, UserId};
use crate::protocol::close::CloseReason;

/// Tells a session that its queue has frames or was closed. One is under way at most, so a mailbox cannot grow.
#[derive(Message)]
#[rtype(result = "()")]
pub struct QueueChanged;

/// Who opens a session. The caller has checked the token and bounded the texts.
#[derive(Clone, Debug)]
pub struct SessionIdentity {
    pub user: UserId,
    pub login: LoginId,
    /// End of the token, epoch milliseconds: the session closes itself then (4002).
    pub expires_at_ms: i64,
    /// The client's name for its device.
    pub device: Option<String>,
    pub platform: Option<String>,
    /// The peer, or what a trusted proxy says that it is.
    pub address: Option<IpAddr>,
}

/// One line of a user's session list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    pub id: SessionId,
    pub login: LoginId,
    pub device: Option<String>,
    pub platform: Option<String>,
    pub address: Option<IpAddr>,
    /// Epoch milliseconds.
    pub connected_at_ms: i64,
}

/// Closes one session from anywhere. Cheap to clone.
#[derive(Clone)]
pub struct SessionHandle {
    pub(super) queue: Arc<SessionQueue>,
    pub(super) session: Recipient<QueueChanged>,
}

impl SessionHandle {
    pub fn id(&self) -> SessionId {
        self.queue.session()
    }

    pub fn user(&self) -> UserId {
        self.queue.user()
    }

    /// Ends the session: what is queued is freed, nothing more is queued, and the peer gets the close frame as soon as
    /// it reads. Answers false if the session had ended before.
    pub fn close(&self, reason: CloseReason) -> bool {
        let first = self.queue.end(Ending::Server(reason));
        if first {
            self.wake();
        }
        first
    }

    /// A full mailbox refuses the message, which then is not needed: what fills it wakes the session too.
    pub(super) fn wake(&self) {
        let _ = self.session.try_send(QueueChanged);
    }
}

/// Says that a session is in the registry. It is held by the session and by its connection; when the last holder is
/// gone, however that came, the registry is told, exactly once.
pub struct Attachment {
    pub(super) registry: Registry,
    pub(super) queue: Arc<SessionQueue>,
}

impl Attachment {
    /// The session's actor has ended; its socket may still linger.
    pub(super) fn session_ended(&self) {
        self.registry.session_ended(&self.queue);
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.registry.socket_closed(&self.queue);
    }
}
