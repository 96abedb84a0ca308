//! One device's observer: it writes what arrives into the device's record, the ledger and the measurement, and says
//! what the device should do about it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, mpsc};

use super::ledger::{Ledger, Row, StreamRecord, Target};
use super::measure::{Measure, record};
use crate::client::{DeviceEvent, Observer, Push};
use crate::domain::ids::UserId;

/// How a device behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads as fast as it can.
    Normal,
    /// Takes a while for every frame.
    Slow,
    /// Connects, and never reads again.
    Frozen,
    /// Does not connect; it pulls at the end.
    Offline,
}

/// Where a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Away,
    Connected,
    /// Connected, and everything before that has been pulled.
    Synced,
}

/// What a device should do after a push. The device is an index of the fleet.
#[derive(Clone, Copy, Debug)]
pub enum Reaction {
    /// Report that a message was read.
    Read { device: usize, target: Target, id: i64 },
    /// Look whether a pushed message is in the tables.
    Verify { device: usize, target: Target, id: i64 },
    /// Ask all that the web client asks after a connect.
    Boot { device: usize },
}

/// What all recorders share.
#[derive(Debug)]
pub struct Hub {
    pub ledger: Ledger,
    pub measure: Measure,
    pub reactions: mpsc::Sender<Reaction>,
    /// Of `Boot`, one at most for each device.
    pub boots: mpsc::Sender<Reaction>,
    /// Devices that are connected.
    pub connected: AtomicUsize,
    /// While a storm is waited for, nobody is cut besides.
    pub is_storm: AtomicBool,
    /// Share of messages that are reported as read.
    pub reads: f64,
    /// Share of pushes that are looked up in the tables.
    pub verify: f64,
    pub web_client: bool,
}

/// Everything that one device got.
#[derive(Debug, Default)]
pub struct DeviceRecord {
    pub private: StreamRecord,
    pub group: StreamRecord,
}

impl DeviceRecord {
    fn stream(&mut self, target: Target) -> &mut StreamRecord {
        match target {
            Target::User(_) => &mut self.private,
            Target::Group(_) => &mut self.group,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Recorder {
    hub: Arc<Hub>,
    pub device: usize,
    pub name: String,
    pub user: UserId,
    pub kind: Kind,
    /// Whether it speaks for its user: the first device reports what is read.
    is_first: bool,
    record: Mutex<DeviceRecord>,
    presence: Mutex<Presence>,
    changed: Notify,
}

impl Recorder {
    pub fn new(hub: Arc<Hub>, device: usize, user: UserId, ordinal: usize, kind: Kind) -> Recorder {
        Recorder {
            hub,
            device,
            name: format!("device {ordinal} of user {user}"),
            user,
            kind,
            is_first: ordinal == 0,
            record: Mutex::default(),
            presence: Mutex::new(Presence::Away),
            changed: Notify::new(),
        }
    }

    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    fn record(&self) -> MutexGuard<'_, DeviceRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the record out, at the end.
    pub fn take_record(&self) -> DeviceRecord {
        std::mem::take(&mut *self.record())
    }

    pub fn presence(&self) -> Presence {
        *self.presence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes where the device is now.
    pub fn set_presence(&self, presence: Presence) {
        let before = {
            let mut present = self.presence.lock().unwrap_or_else(PoisonError::into_inner);
            // A pull that outlived its socket does not bring the device back.
            if presence == Presence::Synced && *present == Presence::Away {
                return;
            }
            std::mem::replace(&mut *present, presence)
        };
        adjust(&self.hub.connected, before != Presence::Away, presence != Presence::Away);
        self.changed.notify_waiters();
    }

    /// Waits until the device is where it should be.
    pub async fn until(&self, presence: Presence) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.presence() == presence {
                return;
            }
            changed.await;
        }
    }

    fn pushed(&self, push: &Push, received_at: Instant) {
        let row = match push {
            Push::PrivateMessage(row) | Push::Recall { row, .. } => self.hub.ledger.private_row(row),
            Push::GroupMessage(row) | Push::GroupRecall { row, .. } => self.hub.ledger.group_row(row),
            Push::Read { .. } | Push::Receipt { .. } | Push::Typing(_) | Push::Other { .. } => {
                self.hub.measure.now().signals += 1;
                return;
            }
        };
        let fault = self.record().stream(row.target).push(row.id, row.number.is_some());
        if let Some(fault) = fault {
            self.hub.ledger.note_fault(fault, &self.name, row.id);
        }
        let due = self.hub.ledger.see(self.user, &row);
        let mut now = self.hub.measure.now();
        let Some(due) = due else {
            now.signals += 1;
            return;
        };
        now.deliveries += 1;
        if self.kind == Kind::Normal {
            record(&mut now.push, received_at.saturating_duration_since(due));
            drop(now);
            self.react(&row);
        }
    }

    /// Where the queue is full, the device does without.
    fn react(&self, row: &Row) {
        let (device, target, id) = (self.device, row.target, row.id);
        if self.is_first && row.sender != self.user && rand::random::<f64>() < self.hub.reads {
            let target = if let Target::User(_) = target { Target::User(row.sender) } else { target };
            let _ = self.hub.reactions.try_send(Reaction::Read { device, target, id });
        }
        if self.hub.verify > 0.0 && rand::random::<f64>() < self.hub.verify {
            let _ = self.hub.reactions.try_send(Reaction::Verify { device, target, id });
        }
    }

    fn pulled(&self, row: Row) {
        let fault = self.record().stream(row.target).pull(row.id, row.number.is_some());
        if let Some(fault) = fault {
            self.hub.ledger.note_fault(fault, &self.name, row.id);
        }
        self.hub.ledger.see(self.user, &row);
    }

    fn connected(&self) {
        {
            let mut record = self.record();
            record.private.start_socket();
            record.group.start_socket();
        }
        self.hub.measure.now().connects += 1;
        self.set_presence(Presence::Connected);
        if self.hub.web_client {
            let _ = self.hub.boots.try_send(Reaction::Boot { device: self.device });
        }
    }
}

fn adjust(count: &AtomicUsize, before: bool, now: bool) {
    match (before, now) {
        (false, true) => drop(count.fetch_add(1, Ordering::Relaxed)),
        (true, false) => drop(count.fetch_sub(1, Ordering::Relaxed)),
        _ => {}
    }
}

impl Observer for Recorder {
    fn observe(&self, event: &DeviceEvent) {
        match event {
            DeviceEvent::Connected => self.connected(),
            DeviceEvent::Push { push, received_at, .. } => self.pushed(push, *received_at),
            DeviceEvent::Pulled(pulled) => {
                for message in &pulled.private {
                    self.pulled(self.hub.ledger.private_row(message));
                }
                for message in &pulled.group {
                    self.pulled(self.hub.ledger.group_row(message));
                }
            }
            DeviceEvent::Synced => self.set_presence(Presence::Synced),
            DeviceEvent::SyncFailed(_) => self.hub.measure.now().error("pull failed for good"),
            DeviceEvent::ConnectFailed { error, .. } => {
                let mut now = self.hub.measure.now();
                now.failed_connects += 1;
                now.error(error.as_str());
            }
            DeviceEvent::Disconnected { code, .. } => {
                {
                    let mut now = self.hub.measure.now();
                    now.disconnects += 1;
                    match code {
                        Some(code) => now.error(format!("socket closed with code {code}")),
                        None => now.error("socket broke"),
                    }
                }
                self.set_presence(Presence::Away);
            }
        }
    }
}
