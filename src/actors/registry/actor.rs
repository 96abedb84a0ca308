//! The registry's actor: user → device set, and the only count of a user's sessions.
//!
//! Started by [`Registry::start`](super::Registry::start) on a thread of its own; lives until the process ends. Because it
//! alone counts and holds the device sets, and everything comes through one queue, a connect that races a disconnect
//! cannot leave a live session unreachable.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use actix::fut::wrap_future;
use actix::{Actor, AsyncContext, Context, Handler, Message, MessageResult};
use tokio::sync::oneshot;

use super::{
    Attach, AttachRefused, Backlog, BeginStop, Broadcast, CloseSession, CloseSessions, CountSessions, Counts,
    ListSessions, Notify, SocketClosed, Which,
};
use crate::actors::devices::{Device, UserDevices};
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
/// Frames put into queues before their sessions are told, at most. Told after each they would write them one by one.
const UNTOLD_FRAMES: usize = 16_384;
/// Stalls are looked for this often within one stall timeout.
const CHECKS_PER_TIMEOUT: u32 = 8;
/// Shortest pause between two looks for stalls.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
/// Pause between two portions of close frames of a stopping server.
const STOP_TICK: Duration = Duration::from_millis(10);

pub(super) struct RegistryActor {
    config: WebSocketConfig,
    users: HashMap<UserId, UserDevices>,
    sessions: usize,
    /// Sessions that have got something and were not told.
    untold: Vec<Arc<Device>>,
    /// Frames routed since sessions were told last.
    routed: usize,
    is_waking: bool,
    /// Users for whom something waits, or did when it was looked last.
    watched: Vec<UserId>,
    looked_for_stalls: Instant,
    backlog: Arc<Backlog>,
    node: Arc<NodeLoad>,
    stopping: bool,
    stop_waiters: Vec<oneshot::Sender<()>>,
}

/// Tell the sessions that have got something since.
#[derive(Message)]
#[rtype(result = "()")]
struct WakeSessions;

impl RegistryActor {
    pub(super) fn new(config: WebSocketConfig, backlog: Arc<Backlog>, node: Arc<NodeLoad>) -> RegistryActor {
        RegistryActor {
            config,
            users: HashMap::new(),
            sessions: 0,
            untold: Vec::new(),
            routed: 0,
            is_waking: false,
            watched: Vec::new(),
            looked_for_stalls: Instant::now(),
            backlog,
            node,
            stopping: false,
            stop_waiters: Vec::new(),
        }
    }

    fn all_sessions(&self) -> impl Iterator<Item = &Arc<Device>> {
        self.users.values().flat_map(UserDevices::sessions)
    }

    fn route(&mut self, receiver: UserId, frame: &Frame) {
        let Some(user) = self.users.get_mut(&receiver) else { return };
        let queued = user.deliver(frame, &mut self.untold);
        if queued && !user.is_watched {
            user.is_watched = true;
            self.watched.push(receiver);
        }
    }

    /// Tells the sessions once everything that waits in the mailbox is routed, so that frames share a write; at once
    /// where that takes long. The mailbox is worked off without a pause, so timers get their turn here.
    fn wake_soon(&mut self, routed: usize, ctx: &mut Context<Self>) {
        self.routed += routed;
        if self.routed >= UNTOLD_FRAMES {
            self.wake_sessions();
            self.look_for_stalls();
            ctx.wait(wrap_future(tokio::task::yield_now()));
        } else if !self.is_waking {
            self.is_waking = true;
            ctx.notify(WakeSessions);
        }
    }

    fn wake_sessions(&mut self) {
        self.routed = 0;
        for device in self.untold.drain(..) {
            device.handle.wake();
        }
    }

    fn stall_timeout(&self) -> Duration {
        Duration::from_millis(self.config.stall_timeout_ms)
    }

    /// Cuts sessions that take nothing, when it is time to look again.
    fn look_for_stalls(&mut self) {
        let stall_timeout = self.stall_timeout();
        if self.looked_for_stalls.elapsed() < stall_timeout / CHECKS_PER_TIMEOUT {
            return;
        }
        self.looked_for_stalls = Instant::now();
        // Who went and came back is in it twice.
        self.watched.sort_unstable();
        self.watched.dedup();
        let users = &mut self.users;
        self.watched.retain(|user| {
            let Some(user) = users.get_mut(user) else { return false };
            user.is_watched = user.cut_stalled(stall_timeout);
            user.is_watched
        });
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

impl Actor for RegistryActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_CAPACITY);
        ctx.run_interval(LOAD_TICK, |registry, _| {
            metrics::gauge!("nudge_in_flight_bytes").set(registry.node.in_flight() as f64);
            registry.cut_largest();
        });
        let pause = (self.stall_timeout() / CHECKS_PER_TIMEOUT).max(SHORTEST_PAUSE);
        ctx.run_interval(pause, |registry, _| registry.look_for_stalls());
    }
}

impl Handler<Notify> for RegistryActor {
    type Result = ();

    fn handle(&mut self, Notify(batch): Notify, ctx: &mut Self::Context) {
        self.cut_largest();
        let mut routed = 0;
        for notification in &batch {
            for receiver in notification.receivers.iter() {
                self.route(*receiver, &notification.frame);
            }
            routed += notification.receivers.len();
            self.backlog.receivers.fetch_sub(notification.receivers.len(), Ordering::Relaxed);
        }
        self.backlog.batches.fetch_sub(1, Ordering::Relaxed);
        self.wake_soon(routed, ctx);
    }
}

impl Handler<Broadcast> for RegistryActor {
    type Result = ();

    fn handle(&mut self, Broadcast(frame): Broadcast, ctx: &mut Self::Context) {
        let receivers: Vec<UserId> = self.users.keys().copied().collect();
        for receiver in &receivers {
            self.route(*receiver, &frame);
        }
        self.wake_soon(receivers.len(), ctx);
    }
}

impl Handler<WakeSessions> for RegistryActor {
    type Result = ();

    fn handle(&mut self, _: WakeSessions, _: &mut Self::Context) {
        self.is_waking = false;
        self.wake_sessions();
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
        for device in user.sessions() {
            if logins.as_ref().is_none_or(|logins| logins.contains(&device.info.login)) {
                device.handle.close(reason);
            }
        }
    }
}

impl Handler<Attach> for RegistryActor {
    type Result = Result<(), AttachRefused>;

    fn handle(&mut self, Attach { identity, handle }: Attach, _: &mut Self::Context) -> Self::Result {
        if self.stopping {
            return Err(AttachRefused::Stopping);
        }
        let open = self.users.get(&identity.user).map_or(0, |user| user.sessions().len());
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
        tracing::debug!(user.id = identity.user.0, session.id = info.id.0, "session attached");
        self.users.entry(identity.user).or_default().add(Arc::new(Device { info, handle }));
        self.sessions += 1;
        self.publish_counts();
        Ok(())
    }
}

impl Handler<SocketClosed> for RegistryActor {
    type Result = ();

    fn handle(&mut self, SocketClosed { user, session }: SocketClosed, _: &mut Self::Context) {
        let Some(devices) = self.users.get_mut(&user) else { return };
        if !devices.remove(session) {
            return;
        }
        if devices.sessions().is_empty() {
            self.users.remove(&user);
        }
        self.sessions -= 1;
        self.publish_counts();
        self.answer_stop_waiters();
    }
}

impl Handler<ListSessions> for RegistryActor {
    type Result = MessageResult<ListSessions>;

    fn handle(&mut self, ListSessions(user): ListSessions, _: &mut Self::Context) -> Self::Result {
        let sessions = self.users.get(&user).map(UserDevices::sessions).unwrap_or_default();
        let open = sessions.iter().filter(|device| device.handle.queue.ending().is_none());
        MessageResult(open.map(|device| device.info.clone()).collect())
    }
}

impl Handler<CloseSession> for RegistryActor {
    type Result = bool;

    fn handle(&mut self, CloseSession { user, session, reason }: CloseSession, _: &mut Self::Context) -> bool {
        let device = self.users.get(&user).and_then(|user| user.find(session));
        device.is_some_and(|device| device.handle.close(reason))
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
