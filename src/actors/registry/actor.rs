//! The registry's actor: user → device set, and the only count of a user's sessions.
//!
//! Started by [`Registry::start`](super::Registry::start) on a thread of its own, which the device sets share; lives
//! until the process ends. Because it alone counts, and starts and stops device sets, and a device set gets everything
//! through one queue, a connect that races a disconnect cannot leave a live session unreachable.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use actix::fut::wrap_future;
use actix::{Actor, Addr, AsyncContext, Context, Handler, MessageResult};
use tokio::sync::oneshot;

use super::{
    Attach, AttachRefused, Backlog, BeginStop, Broadcast, CloseSession, CloseSessions, CountSessions, Counts,
    ListSessions, Notify, SocketClosed, Which,
};
use crate::actors::devices::{AddSession, Deliver, Device, RemoveSession, StopDevices, UserDevices};
use crate::actors::queue::NodeLoad;
use crate::actors::session::SessionInfo;
use crate::config::WebSocketConfig;
use crate::domain::ids::UserId;
use crate::protocol::close::CloseReason;
use crate::protocol::frame::Frame;

/// Requests waiting before a sender has to wait itself.
const MAILBOX_CAPACITY: usize = 4_096;
/// How often the gauge of bytes in flight is set and the node's limit is looked at while nothing is routed.
const LOAD_TICK: Duration = Duration::from_secs(1);
/// Frames routed before the device sets get their turn: below what the mailbox of one of them holds.
const ROUTED_FRAMES: usize = 8_192;
/// Pause between two portions of close frames of a stopping server.
const STOP_TICK: Duration = Duration::from_millis(10);

pub(super) struct RegistryActor {
    config: WebSocketConfig,
    users: HashMap<UserId, OnlineUser>,
    sessions: usize,
    /// Frames routed since the device sets had their turn.
    routed: usize,
    backlog: Arc<Backlog>,
    node: Arc<NodeLoad>,
    stopping: bool,
    stop_waiters: Vec<oneshot::Sender<()>>,
}

struct OnlineUser {
    devices: Addr<UserDevices>,
    /// In order of connecting. Cut sessions stay until their socket is gone, so they count against the limit.
    sessions: Vec<Arc<Device>>,
}

impl RegistryActor {
    pub(super) fn new(config: WebSocketConfig, backlog: Arc<Backlog>, node: Arc<NodeLoad>) -> RegistryActor {
        RegistryActor {
            config,
            users: HashMap::new(),
            sessions: 0,
            routed: 0,
            backlog,
            node,
            stopping: false,
            stop_waiters: Vec::new(),
        }
    }

    fn all_sessions(&self) -> impl Iterator<Item = &Arc<Device>> {
        self.users.values().flat_map(|user| &user.sessions)
    }

    /// Device sets share this thread. They run when the mailbox is empty, so that what waits in it together is written
    /// together; but as it is worked off without a pause, frames must not pile up in front of them.
    fn count_routed(&mut self, routed: usize, ctx: &mut Context<Self>) {
        self.routed += routed;
        if self.routed >= ROUTED_FRAMES {
            self.routed = 0;
            ctx.wait(wrap_future(tokio::task::yield_now()));
        }
    }

    /// Cuts the sessions with most bytes in flight until the node is an eighth below its limit, so that the next batch
    /// does not have to cut again.
    fn cut_largest(&self) {
        let limit = self.config.max_node_in_flight_bytes;
        if self.node.in_flight() <= limit {
            return;
        }
        let mut by_size: Vec<_> = self.all_sessions().map(|device| (device.handle.queue.in_flight(), device)).collect();
        by_size.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        for (bytes, device) in by_size {
            if bytes == 0 || self.node.in_flight() <= limit - limit / 8 {
                return;
            }
            device.handle.close(CloseReason::SlowConsumer);
        }
    }

    fn publish_counts(&self) {
        metrics::gauge!("nudge_sessions").set(self.sessions as f64);
        metrics::gauge!("nudge_users_online").set(self.users.len() as f64);
    }

    /// Closes the next part of the sessions, as many as are due by now.
    fn close_due(sessions: &mut Vec<Arc<Device>>, total: usize, passed: Duration, window: Duration) {
        let share = if window.is_zero() { 1.0 } else { (passed.as_secs_f64() / window.as_secs_f64()).min(1.0) };
        let left = total - (total as f64 * share).ceil() as usize;
        while sessions.len() > left {
            let Some(device) = sessions.pop() else { return };
            device.handle.close(CloseReason::Shutdown);
        }
    }

    fn plan_closes(
        mut sessions: Vec<Arc<Device>>,
        total: usize,
        began: Instant,
        window: Duration,
        ctx: &mut Context<Self>,
    ) {
        Self::close_due(&mut sessions, total, began.elapsed(), window);
        if !sessions.is_empty() {
            ctx.run_later(STOP_TICK, move |_, ctx| Self::plan_closes(sessions, total, began, window, ctx));
        }
    }

    fn answer_stop_waiters(&mut self) {
        if self.sessions == 0 {
            for waiter in self.stop_waiters.drain(..) {
                let _ = waiter.send(());
            }
        }
    }
}

/// Hands a frame to a device set. One that cannot take it has missed it: its sessions are closed (invariant I5).
fn route(user: &OnlineUser, frame: &Frame) {
    if user.devices.try_send(Deliver(frame.clone())).is_err() {
        for device in &user.sessions {
            device.handle.close(CloseReason::Resync);
        }
    }
}

impl Actor for RegistryActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_CAPACITY);
        ctx.run_interval(LOAD_TICK, |registry, _| {
            metrics::gauge!("nudge_in_flight_bytes").set(registry.node.in_flight() as f64);
            registry.cut_largest();
        });
    }
}

impl Handler<Notify> for RegistryActor {
    type Result = ();

    fn handle(&mut self, Notify(batch): Notify, ctx: &mut Self::Context) {
        self.cut_largest();
        let routed = batch.iter().map(|notification| notification.receivers.len()).sum();
        for notification in &batch {
            for receiver in notification.receivers.iter() {
                if let Some(user) = self.users.get(receiver) {
                    route(user, &notification.frame);
                }
            }
            self.backlog.receivers.fetch_sub(notification.receivers.len(), Ordering::Relaxed);
        }
        self.backlog.batches.fetch_sub(1, Ordering::Relaxed);
        self.count_routed(routed, ctx);
    }
}

impl Handler<Broadcast> for RegistryActor {
    type Result = ();

    fn handle(&mut self, Broadcast(frame): Broadcast, ctx: &mut Self::Context) {
        let routed = self.users.len();
        for user in self.users.values() {
            route(user, &frame);
        }
        self.count_routed(routed, ctx);
    }
}

impl Handler<CloseSessions> for RegistryActor {
    type Result = ();

    /// Closes the queues themselves: frames on their way through the device sets then find them closed.
    fn handle(&mut self, CloseSessions { which, reason }: CloseSessions, _: &mut Self::Context) {
        let (user, logins) = match which {
            Which::All => {
                for device in self.all_sessions() {
                    device.handle.close(reason);
                }
                return;
            }
            Which::User(user) => (user, None),
            Which::Logins(user, logins) => (user, Some(logins)),
        };
        let Some(user) = self.users.get(&user) else { return };
        for device in &user.sessions {
            if logins.as_ref().is_none_or(|logins| logins.contains(&device.info.login)) {
                device.handle.close(reason);
            }
        }
    }
}

impl Handler<Attach> for RegistryActor {
    type Result = Result<(), AttachRefused>;

    #[allow(
        clippy::disallowed_methods,
        reason = "bounded by the sessions of one user; the session must become reachable"
    )]
    fn handle(&mut self, Attach { identity, handle }: Attach, _: &mut Self::Context) -> Self::Result {
        if self.stopping {
            return Err(AttachRefused::Stopping);
        }
        let open = self.users.get(&identity.user).map_or(0, |user| user.sessions.len());
        if open >= self.config.max_sessions_per_user {
            return Err(AttachRefused::TooManySessions);
        }
        let info = SessionInfo {
            id: handle.id(),
            login: identity.login,
            device: identity.device,
            platform: identity.platform,
            address: identity.address,
            connected_at_ms: epoch_ms(),
        };
        let stall_timeout = Duration::from_millis(self.config.stall_timeout_ms);
        let user = self.users.entry(identity.user).or_insert_with(|| OnlineUser {
            devices: UserDevices::new(stall_timeout).start(),
            sessions: Vec::with_capacity(1),
        });
        let device = Arc::new(Device { info, handle });
        user.devices.do_send(AddSession(device.clone()));
        tracing::debug!(user.id = identity.user.0, session.id = device.info.id.0, "session attached");
        user.sessions.push(device);
        self.sessions += 1;
        self.publish_counts();
        Ok(())
    }
}

impl Handler<SocketClosed> for RegistryActor {
    type Result = ();

    #[allow(clippy::disallowed_methods, reason = "once per session; a lost one would leave a ghost entry")]
    fn handle(&mut self, SocketClosed { user, session }: SocketClosed, _: &mut Self::Context) {
        let Entry::Occupied(mut entry) = self.users.entry(user) else { return };
        let online = entry.get_mut();
        let Some(position) = online.sessions.iter().position(|device| device.info.id == session) else { return };
        online.sessions.remove(position);
        self.sessions -= 1;
        if online.sessions.is_empty() {
            entry.remove().devices.do_send(StopDevices);
        } else {
            online.devices.do_send(RemoveSession(session));
        }
        self.publish_counts();
        self.answer_stop_waiters();
    }
}

impl Handler<ListSessions> for RegistryActor {
    type Result = MessageResult<ListSessions>;

    fn handle(&mut self, ListSessions(user): ListSessions, _: &mut Self::Context) -> Self::Result {
        let sessions = self.users.get(&user).map(|user| user.sessions.as_slice()).unwrap_or_default();
        let open = sessions.iter().filter(|device| device.handle.queue.ending().is_none());
        MessageResult(open.map(|device| device.info.clone()).collect())
    }
}

impl Handler<CloseSession> for RegistryActor {
    type Result = bool;

    fn handle(&mut self, CloseSession { user, session, reason }: CloseSession, _: &mut Self::Context) -> bool {
        let found = |user: &OnlineUser| -> Option<Arc<Device>> {
            user.sessions.iter().find(|device| device.info.id == session).cloned()
        };
        self.users.get(&user).and_then(found).is_some_and(|device| device.handle.close(reason))
    }
}

impl Handler<CountSessions> for RegistryActor {
    type Result = MessageResult<CountSessions>;

    fn handle(&mut self, _: CountSessions, _: &mut Self::Context) -> Self::Result {
        MessageResult(Counts { sessions: self.sessions, users: self.users.len() })
    }
}

impl Handler<BeginStop> for RegistryActor {
    type Result = ();

    fn handle(&mut self, BeginStop { window, gone }: BeginStop, ctx: &mut Self::Context) {
        self.stop_waiters.push(gone);
        if !self.stopping {
            self.stopping = true;
            let sessions: Vec<_> = self.all_sessions().cloned().collect();
            let total = sessions.len();
            tracing::info!(sessions = total, window_ms = window.as_millis() as u64, "closing all sessions");
            Self::plan_closes(sessions, total, Instant::now(), window, ctx);
        }
        self.answer_stop_waiters();
    }
}

fn epoch_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}
