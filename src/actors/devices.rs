//! The device set of one online user: puts frames into the queue of each session and cuts those that do not read.
//!
//! Part of the registry, which creates it with the user's first session and drops it when the user's last socket is
//! gone. It cannot freeze: it waits for no socket.

use std::sync::Arc;
use std::time::Duration;

use crate::actors::queue::Pushed;
use crate::actors::session::{SessionHandle, SessionInfo};
use crate::domain::ids::SessionId;
use crate::protocol::frame::Frame;

/// One session as the registry knows it.
pub(super) struct Device {
    pub info: SessionInfo,
    pub handle: SessionHandle,
}

#[derive(Default)]
pub(super) struct UserDevices {
    /// In order of connecting. Cut sessions stay until their socket is gone, so they count against the limit.
    sessions: Vec<Arc<Device>>,
    /// The registry looks after this user: something was queued, and may stall.
    pub is_watched: bool,
}

impl UserDevices {
    pub fn sessions(&self) -> &[Arc<Device>] {
        &self.sessions
    }

    pub fn find(&self, session: SessionId) -> Option<&Arc<Device>> {
        self.sessions.iter().find(|device| device.info.id == session)
    }

    pub fn add(&mut self, device: Arc<Device>) {
        self.sessions.push(device);
    }

    /// Answers whether the session was there.
    pub fn remove(&mut self, session: SessionId) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|device| device.info.id != session);
        self.sessions.len() < before
    }

    /// Queues a frame for every session; those that must be told of it are added to `untold`. Answers whether it waits
    /// anywhere.
    pub fn deliver(&self, frame: &Frame, untold: &mut Vec<Arc<Device>>) -> bool {
        let mut queued = false;
        for device in &self.sessions {
            match device.handle.queue.push(frame) {
                Pushed::Queued { wake } => {
                    queued = true;
                    if wake {
                        untold.push(device.clone());
                    }
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
        queued
    }

    /// Answers whether anything still waits.
    pub fn cut_stalled(&self, stall_timeout: Duration) -> bool {
        let mut waiting = false;
        for device in &self.sessions {
            if device.handle.queue.cut_if_stalled(stall_timeout) {
                device.handle.wake();
            }
            waiting |= device.handle.queue.in_flight() > 0;
        }
        waiting
    }
}
