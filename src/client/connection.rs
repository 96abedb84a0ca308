//! The life of a device's connection: connect, pull, take in pushes, and come back after every loss.
//!
//! One task owns the socket; each (re)connect starts a pull in a task of its own, so frames are read while it runs.
//! Both end with the [`Connection`].

use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use super::device::Device;
use super::push::{Incoming, Push, parse_frame};
use super::socket::{HandshakeError, Received, Socket};
use super::sync::Pulled;
use crate::protocol::close::CloseReason;

/// What happens on a connection.
#[derive(Debug)]
pub enum DeviceEvent {
    /// The socket is open. A pull starts now.
    Connected,
    /// A frame of the server, already taken into the store.
    Push {
        push: Push,
        /// Whether it told the store something new (a message that came before is not).
        is_new: bool,
        /// When it was read from the socket; it may have waited in the event channel since.
        received_at: Instant,
    },
    /// Messages that a pull brought and that were not known.
    Pulled(Pulled),
    /// The pull that a (re)connect started has come to its end.
    Synced,
    /// That pull failed for good; the text says why. The next (re)connect tries again.
    SyncFailed(String),
    /// The handshake failed; the next try is after `retry_in`.
    ConnectFailed { error: String, retry_in: Duration },
    /// The connection was lost, with the code of the close frame where there was one. `retry_in` is `None` when the
    /// server said not to come back (signed out, closed from another device), and then this is the last event.
    Disconnected { code: Option<u16>, retry_in: Option<Duration> },
}

/// Is told of every event the moment it happens, before it goes into the event channel. What a pull brought is told
/// together with the move of its cursor: an observer misses nothing, whatever is cut or dropped meanwhile. It is called
/// with the store locked and on the task that reads the socket, so it must be quick and leave the device alone.
pub trait Observer: Send + Sync + std::fmt::Debug {
    /// Something has happened.
    fn observe(&self, event: &DeviceEvent);
}

/// A running connection. Dropping it cuts the socket without a goodbye, as a crash would.
#[derive(Debug)]
pub struct Connection {
    events: mpsc::Receiver<DeviceEvent>,
    stop: oneshot::Sender<()>,
    task: AbortOnDrop,
}

#[derive(Debug)]
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    /// The next event; `None` after the last one. Events must be read: their channel is bounded, and when it is full
    /// the socket is not read either, until the server cuts it as too slow.
    pub async fn next(&mut self) -> Option<DeviceEvent> {
        self.events.recv().await
    }

    /// Discards events until one of which `pick` makes something. `None` when the connection ends before.
    pub async fn next_matching<T>(&mut self, mut pick: impl FnMut(DeviceEvent) -> Option<T>) -> Option<T> {
        while let Some(event) = self.next().await {
            if let Some(found) = pick(event) {
                return Some(found);
            }
        }
        None
    }

    /// Drops all further events, for those who have an [`Observer`]: the socket is read as fast as it can be.
    pub fn ignore_events(&mut self) {
        self.events.close();
    }

    /// Cuts the socket without a goodbye and waits until it is gone.
    pub async fn cut(mut self) {
        self.task.0.abort();
        let _ = (&mut self.task.0).await;
    }

    /// Closes the socket with a goodbye and waits until all tasks have ended.
    pub async fn close(mut self) {
        drop(self.events);
        let _ = self.stop.send(());
        let _ = (&mut self.task.0).await;
    }
}

/// Starts the task of a connection.
pub(super) fn start(device: Device) -> Connection {
    let (sender, events) = mpsc::channel(device.config().event_capacity.max(1));
    let (stop, stopped) = oneshot::channel();
    let runner = Runner { device, events: sender, pulls: JoinSet::new(), stopped };
    Connection { events, stop, task: AbortOnDrop(tokio::spawn(runner.run())) }
}

/// How the service of one socket came to its end.
enum End {
    Stopped,
    Lost(Option<u16>),
}

struct Runner {
    device: Device,
    events: mpsc::Sender<DeviceEvent>,
    pulls: JoinSet<()>,
    /// Not polled again once it has fired: everything returns then.
    stopped: oneshot::Receiver<()>,
}

impl Runner {
    async fn run(mut self) {
        let backoff = self.device.config().reconnect;
        let mut attempt = 0;
        loop {
            let opened = tokio::select! {
                biased;
                _ = &mut self.stopped => return,
                opened = connect(&self.device) => opened,
            };
            let retry_in = match opened {
                Ok(socket) => {
                    attempt = 0;
                    let End::Lost(code) = self.serve(socket).await else { return };
                    let retry_in = should_reconnect(code).then(|| backoff.random_delay(attempt));
                    self.emit(DeviceEvent::Disconnected { code, retry_in }).await;
                    retry_in
                }
                Err(HandshakeError::Refused(401)) => {
                    let code = Some(CloseReason::SignedOut.code());
                    self.emit(DeviceEvent::Disconnected { code, retry_in: None }).await;
                    None
                }
                Err(error) => {
                    let retry_in = backoff.random_delay(attempt);
                    self.emit(DeviceEvent::ConnectFailed { error: error.to_string(), retry_in }).await;
                    Some(retry_in)
                }
            };
            let Some(retry_in) = retry_in else { return };
            attempt += 1;
            tokio::select! {
                biased;
                _ = &mut self.stopped => return,
                () = sleep(retry_in) => {}
            }
        }
    }

    /// Takes in what one socket brings, until it ends.
    async fn serve(&mut self, mut socket: Socket) -> End {
        self.device.with_store(|store| store.start_connection());
        self.emit(DeviceEvent::Connected).await;
        if self.device.config().pull_on_connect {
            self.start_pull();
        }
        loop {
            let received = tokio::select! {
                biased;
                _ = &mut self.stopped => {
                    socket.close().await;
                    return End::Stopped;
                }
                received = socket.next() => received,
            };
            match received {
                Received::Text(text) => self.take_in(&text).await,
                Received::Ended(code) => return End::Lost(code),
            }
        }
    }

    async fn take_in(&self, text: &str) {
        let received_at = Instant::now();
        if let Incoming::Push(push) = parse_frame(text) {
            let is_new = self.device.with_store(|store| store.merge_push(&push));
            self.emit(DeviceEvent::Push { push, is_new, received_at }).await;
        }
    }

    /// A pull that began before this (re)connect may already have passed what was missed, so another one follows it;
    /// but one that has not begun is enough.
    fn start_pull(&mut self) {
        while self.pulls.try_join_next().is_some() {}
        if self.pulls.len() < 2 {
            self.pulls.spawn(pull(self.device.clone(), self.events.clone()));
        }
    }

    /// Nobody listening is no reason to stop.
    async fn emit(&self, event: DeviceEvent) {
        self.device.observe(&event);
        let _ = self.events.send(event).await;
    }
}

async fn connect(device: &Device) -> Result<Socket, HandshakeError> {
    let config = device.config();
    let address = device.api().socket_address(&config.device).await;
    let address = address.map_err(|error| HandshakeError::Failed(error.to_string()))?;
    Socket::connect(&address, config.ping_interval, config.connect_timeout).await
}

/// Pulls until it succeeds, or until trying again makes no sense.
async fn pull(device: Device, events: mpsc::Sender<DeviceEvent>) {
    let mut attempt = 0;
    let last_event = loop {
        match device.sync_into(Some(&events)).await {
            Ok(_) => break DeviceEvent::Synced,
            Err(error) if error.is_temporary() => {
                sleep(device.config().reconnect.random_delay(attempt)).await;
                attempt += 1;
            }
            Err(error) => break DeviceEvent::SyncFailed(error.to_string()),
        }
    };
    device.observe(&last_event);
    let _ = events.send(last_event).await;
}

/// Broken connections and unknown codes are worth another try.
fn should_reconnect(code: Option<u16>) -> bool {
    let reason = CloseReason::ALL.into_iter().find(|reason| Some(reason.code()) == code);
    reason.is_none_or(CloseReason::should_reconnect)
}
