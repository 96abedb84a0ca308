//! Who listens in a chaos run: our own client, and sockets of a foreign implementation that only listen. Both come back
//! after every loss. What each connection was told is noted in the order of arrival.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use actix_web::rt::task::JoinHandle;
use futures_util::{SinkExt, StreamExt};
use nudge::client::{Device, DeviceEvent, Push};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::app::parse_push;

/// Between two pings of a foreign socket, which gives up after three of them without a frame.
const PING_INTERVAL: Duration = Duration::from_millis(500);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause before a foreign socket comes back.
const AGAIN: Duration = Duration::from_millis(100);

/// The ids of the stored rows that one connection was told: of private messages, and of messages of groups.
pub type Heard = [Vec<i64>; 2];

/// One that listens for a user.
pub struct Ear {
    pub name: String,
    pub user: i64,
    /// Of each connection, the present one last.
    pub heard: Rc<RefCell<Vec<Heard>>>,
    close: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Ear {
    /// Connects a device and stays connected.
    pub fn of_device(name: String, device: &Device) -> Ear {
        let heard = Rc::default();
        let (close, closed) = oneshot::channel();
        let task = actix_web::rt::spawn(listen(device.clone(), Rc::clone(&heard), closed));
        Ear { name, user: device.user_id().0, heard, close, task }
    }

    /// The same for a socket of a foreign implementation.
    pub fn of_socket(name: String, user: i64, url: String) -> Ear {
        let heard = Rc::default();
        let (close, closed) = oneshot::channel();
        let task = actix_web::rt::spawn(listen_on_sockets(url, Rc::clone(&heard), closed));
        Ear { name, user, heard, close, task }
    }

    /// Whether the present connection was told of this group message.
    pub fn has_heard(&self, group_message: i64) -> bool {
        self.heard.borrow().last().is_some_and(|heard| heard[1].last() >= Some(&group_message))
    }

    /// Says goodbye.
    pub async fn close(self) {
        let _ = self.close.send(());
        self.task.await.unwrap();
    }
}

fn note(heard: &RefCell<Vec<Heard>>, is_group: bool, id: i64) {
    heard.borrow_mut().last_mut().unwrap()[usize::from(is_group)].push(id);
}

async fn listen(device: Device, heard: Rc<RefCell<Vec<Heard>>>, mut closed: oneshot::Receiver<()>) {
    let mut connection = device.connect();
    loop {
        let event = tokio::select! {
            _ = &mut closed => return connection.close().await,
            event = connection.next() => event.expect("the client gave up"),
        };
        match event {
            DeviceEvent::Connected => heard.borrow_mut().push(Heard::default()),
            DeviceEvent::Push { push: Push::PrivateMessage(row) | Push::Recall { row, .. }, .. } => {
                note(&heard, false, row.id.0);
            }
            DeviceEvent::Push { push: Push::GroupMessage(row) | Push::GroupRecall { row, .. }, .. } => {
                note(&heard, true, row.id.0);
            }
            DeviceEvent::Disconnected { code, retry_in: None } => panic!("sent away with code {code:?}"),
            DeviceEvent::SyncFailed(error) => panic!("a pull failed for good: {error}"),
            _ => {}
        }
    }
}

async fn listen_on_sockets(url: String, heard: Rc<RefCell<Vec<Heard>>>, mut closed: oneshot::Receiver<()>) {
    loop {
        tokio::select! {
            _ = &mut closed => return,
            () = listen_on_a_socket(&url, &heard) => {}
        }
        sleep(AGAIN).await;
    }
}

/// Until the socket ends, breaks or falls silent.
async fn listen_on_a_socket(url: &str, heard: &RefCell<Vec<Heard>>) {
    let mut socket = match timeout(CONNECT_TIMEOUT, connect_async(url)).await {
        Ok(Ok((socket, _))) => socket,
        Ok(Err(Error::Http(response))) => {
            let status = response.status();
            assert!(matches!(status.as_u16(), 408 | 429 | 503), "a handshake was refused with {status}");
            return;
        }
        _ => return,
    };
    heard.borrow_mut().push(Heard::default());
    let mut last_frame = Instant::now();
    while last_frame.elapsed() < 3 * PING_INTERVAL {
        match timeout(PING_INTERVAL, next_text(&mut socket)).await {
            Ok(Some(text)) => {
                last_frame = Instant::now();
                note_push(heard, &text);
            }
            Ok(None) => return,
            Err(_) if socket.send(Message::text("ping")).await.is_err() => return,
            Err(_) => {}
        }
    }
}

/// Empty for a frame without a text; `None` at the end.
async fn next_text(socket: &mut WebSocketStream<MaybeTlsStream<TcpStream>>) -> Option<String> {
    match socket.next().await {
        Some(Ok(Message::Text(text))) => Some(text.to_string()),
        Some(Ok(Message::Close(_)) | Err(_)) | None => None,
        Some(Ok(_)) => Some(String::new()),
    }
}

fn note_push(heard: &RefCell<Vec<Heard>>, text: &str) {
    if text.is_empty() || text == "pong" {
        return;
    }
    let push = parse_push(text);
    if push.payload["clientMessageId"].is_string()
        && let Some(id) = push.payload["id"].as_i64()
    {
        note(heard, push.conversation_type == 2, id);
    }
}
