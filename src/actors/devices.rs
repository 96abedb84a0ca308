//! The device set of one online user: puts frames into the queue of each session and cuts those that do not read.
//!
//! Started by the registry with the user's first session, on the registry's thread, and stopped by it when the user's
//! last socket is gone; never by itself. It cannot freeze: it waits for no socket.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message};

use crate::actors::queue::Pushed;
use crate::actors::session::{SessionHandle, SessionInfo};
use crate::domain::ids::SessionId;
use crate::protocol::frame::Frame;

/// Frames waiting here. The registry yields after every batch, so this holds one batch or two; a user for whom it is
/// full is resynchronised.
const MAILBOX_CAPACITY: usize = 16_384;
/// Stalls are looked for this often within one stall timeout, and only while something waits.
const CHECKS_PER_TIMEOUT: u32 = 8;

/// Queue this frame for every session of the user.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Deliver(pub Frame);

/// A session that the registry has just accepted.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct AddSession(pub Arc<Device>);

/// The socket of this session is gone.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct RemoveSession(pub SessionId);

/// Tell the sessions that have got something since.
#[derive(Message)]
#[rtype(result = "()")]
struct TellSessions;

/// The user's last socket is gone.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct StopDevices;

/// One session as the registry and the device set know it.
pub(super) struct Device {
    pub info: SessionInfo,
    pub handle: SessionHandle,
}

pub(super) struct UserDevices {
    sessions: Vec<Arc<Device>>,
    stall_timeout: Duration,
    check_planned: bool,
    tell_planned: bool,
}

impl UserDevices {
    pub(super) fn new(stall_timeout: Duration) -> UserDevices {
        UserDevices { sessions: Vec::new(), stall_timeout, check_planned: false, tell_planned: false }
    }

    fn plan_stall_check(&mut self, ctx: &mut Context<Self>) {
        if self.check_planned {
            return;
        }
        self.check_planned = true;
        let pause = (self.stall_timeout / CHECKS_PER_TIMEOUT).max(Duration::from_millis(10));
        ctx.run_later(pause, |devices, ctx| {
            devices.check_planned = false;
            if devices.cut_stalled() {
                devices.plan_stall_check(ctx);
            }
        });
    }

    /// Answers whether anything still waits.
    fn cut_stalled(&self) -> bool {
        let mut waiting = false;
        for device in &self.sessions {
            if device.handle.queue.cut_if_stalled(self.stall_timeout) {
                device.handle.wake();
            }
            waiting |= device.handle.queue.in_flight() > 0;
        }
        waiting
    }
}

impl Actor for UserDevices {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_CAPACITY);
    }
}

impl Handler<Deliver> for UserDevices {
    type Result = ();

    fn handle(&mut self, Deliver(frame): Deliver, ctx: &mut Self::Context) {
        let (mut queued, mut tell) = (false, false);
        for device in &self.sessions {
            match device.handle.queue.push(&frame) {
                Pushed::Queued { wake } => {
                    queued = true;
                    tell |= wake;
                }
                Pushed::Dropped => {
                    metrics::counter!("nudge_frames_dropped_total", "reason" => "signal_under_pressure").increment(1);
                }
                // Where the session is still polled it can say why it ends.
                Pushed::Cut => device.handle.wake(),
                // Nothing to write, but the page before it may be stuck.
                Pushed::Held => queued = true,
                Pushed::Replayed | Pushed::Closed => {}
            }
        }
        if queued {
            self.plan_stall_check(ctx);
        }
        // Worked off after the mailbox: frames that came together share a write. Told at once, the session would take
        // the first of them on its own thread and write it alone.
        if tell && !self.tell_planned {
            self.tell_planned = true;
            ctx.notify(TellSessions);
        }
    }
}

impl Handler<TellSessions> for UserDevices {
    type Result = ();

    fn handle(&mut self, _: TellSessions, _: &mut Self::Context) {
        self.tell_planned = false;
        for device in &self.sessions {
            if device.handle.queue.in_flight() > 0 {
                device.handle.wake();
            }
        }
    }
}

impl Handler<AddSession> for UserDevices {
    type Result = ();

    fn handle(&mut self, AddSession(device): AddSession, _: &mut Self::Context) {
        self.sessions.push(device);
    }
}

impl Handler<RemoveSession> for UserDevices {
    type Result = ();

    fn handle(&mut self, RemoveSession(session): RemoveSession, _: &mut Self::Context) {
        self.sessions.retain(|device| device.info.id != session);
    }
}

impl Handler<StopDevices> for UserDevices {
    type Result = ();

    fn handle(&mut self, _: StopDevices, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
