//! The client against a stub of the server that does what each test tells it to: what happens when answers get lost,
//! tokens end and sockets break.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::*;
use crate::domain::ids::{MessageId, UserId};

mod observed;

/// One request, as the stub saw it.
#[derive(Clone, Debug)]
struct Call {
    /// Method and path.
    verb: String,
    authorization: String,
    body: String,
}

impl Call {
    /// A number of the body.
    fn number(&self, name: &str) -> i64 {
        serde_json::from_str::<Value>(&self.body).unwrap()[name].as_i64().unwrap()
    }
}

enum Answer {
    Data(Value),
    Code(i64),
    /// The connection breaks instead of an answer.
    Cut,
}

struct Stub {
    endpoint: Endpoint,
    calls: Arc<Mutex<Vec<Call>>>,
    sockets: mpsc::Receiver<WebSocketStream<TcpStream>>,
}

impl Stub {
    /// A server that answers calls by `answer`, given the call and how many of its verb came before.
    async fn start(answer: impl Fn(&Call, usize) -> Answer + Send + Sync + 'static) -> Stub {
        Stub::start_with(answer, false).await
    }

    async fn start_with(
        answer: impl Fn(&Call, usize) -> Answer + Send + Sync + 'static,
        refuses_sockets: bool,
    ) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let (sender, sockets) = mpsc::channel(8);
        let (seen, answer) = (calls.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, answer, sender) = (seen.clone(), answer.clone(), sender.clone());
                tokio::spawn(async move {
                    let mut start = [0; 14];
                    while stream.peek(&mut start).await.unwrap() < start.len() {}
                    if &start != b"GET /infra/ws?" {
                        serve_call(stream, &seen, &*answer).await;
                    } else if refuses_sockets {
                        stream.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                    } else {
                        sender.send(tokio_tungstenite::accept_async(stream).await.unwrap()).await.unwrap();
                    }
                });
            }
        });
        Stub { endpoint, calls, sockets }
    }

    fn device(&self) -> Device {
        let fast = Backoff {
            base: Duration::from_millis(5),
            max: Duration::from_millis(20),
            jitter: Duration::from_millis(5),
        };
        let config = DeviceConfig { pull_size: 2, reconnect: fast, resend: fast, ..DeviceConfig::default() };
        self.device_with(config)
    }

    fn device_with(&self, config: DeviceConfig) -> Device {
        let tokens = Tokens {
            user_id: UserId(1),
            access_token: "old".to_owned(),
            refresh_token: "refresh".to_owned(),
            expires_time: 0,
        };
        Device::new(self.endpoint.clone(), tokens, config)
    }

    async fn socket(&mut self) -> WebSocketStream<TcpStream> {
        self.sockets.recv().await.unwrap()
    }

    fn calls(&self, verb: &str) -> Vec<Call> {
        self.calls.lock().unwrap().iter().filter(|call| call.verb == verb).cloned().collect()
    }
}

async fn serve_call(mut stream: TcpStream, seen: &Mutex<Vec<Call>>, answer: &(impl Fn(&Call, usize) -> Answer + Sync)) {
    let call = read_call(&mut stream).await;
    let before = {
        let mut seen = seen.lock().unwrap();
        let before = seen.iter().filter(|earlier| earlier.verb == call.verb).count();
        seen.push(call.clone());
        before
    };
    let body = match answer(&call, before) {
        Answer::Data(data) => json!({ "code": 0, "msg": "", "data": data }),
        Answer::Code(code) => json!({ "code": code, "msg": "no", "data": null }),
        Answer::Cut => return,
    }
    .to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).await.unwrap();
}

async fn read_call(stream: &mut TcpStream) -> Call {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        stream.read_buf(&mut bytes).await.unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        if body.len() == header(head, "content-length").parse().unwrap_or(0) {
            break (head.to_owned(), body.to_owned());
        }
    };
    let (method, target) = head.split_once(' ').unwrap();
    let url = url::Url::parse(&format!("http://stub{}", target.split(' ').next().unwrap())).unwrap();
    assert_eq!(header(&head, "tenant-id"), "1");
    Call {
        verb: format!("{method} {}", url.path().rsplit('/').next().unwrap()),
        authorization: header(&head, "authorization"),
        body,
    }
}

fn header(head: &str, name: &str) -> String {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).unwrap_or_default()
}

fn row(id: i64) -> Value {
    json!({ "id": id, "clientMessageId": format!("c{id}"), "senderId": 2, "receiverId": 1, "type": 101,
            "content": "{\"content\":\"x\"}", "status": 0, "receiptStatus": 1, "sendTime": id })
}

fn frame(id: i64) -> Message {
    let envelope = json!({ "conversationType": 1, "contentType": 101, "payload": row(id) });
    Message::text(json!({ "type": "im-notification", "content": envelope.to_string() }).to_string())
}

/// The answer to `/im/sync` of a server that holds the messages 1 to `newest`.
fn pull(call: &Call, newest: i64) -> Answer {
    let state = json!({ "list": [], "lastUpdateTime": null, "lastId": null, "more": false });
    let size = call.number("size") as usize;
    let page: Vec<_> = (call.number("privateMinId") + 1..=newest).take(size).collect();
    let min_id = page.last().copied().unwrap_or(call.number("privateMinId"));
    let rows: Vec<_> = page.iter().copied().map(row).collect();
    let private = json!({ "list": rows, "minId": min_id, "more": page.len() == size, "truncated": false });
    let group = json!({ "list": [], "minId": 0, "more": false, "truncated": false });
    Answer::Data(json!({ "private": private, "group": group, "friend": state, "friendRequest": state,
        "groupRequest": state, "read": state, "groupList": null }))
}

fn ids<'a>(messages: impl IntoIterator<Item = &'a Arc<PrivateMessage>>) -> Vec<i64> {
    messages.into_iter().map(|message| message.id.0).collect()
}

async fn until_synced(connection: &mut Connection) -> Vec<i64> {
    let mut pulled = Vec::new();
    let synced = connection.next_matching(|event| match event {
        DeviceEvent::Pulled(new) => {
            pulled.extend(ids(&new.private));
            None
        }
        DeviceEvent::Synced => Some(()),
        _ => None,
    });
    synced.await.unwrap();
    pulled
}

#[tokio::test]
async fn a_send_is_repeated_under_one_client_id_until_it_is_answered() {
    let stub = Stub::start(|_, before| match before {
        0 => Answer::Cut,
        1 => Answer::Code(500),
        2 => Answer::Code(429),
        _ => Answer::Data(row(7)),
    })
    .await;
    let device = stub.device();
    assert_eq!(device.send_text(UserId(2), "x").await.unwrap().id, MessageId(7));
    let bodies: Vec<_> = stub.calls("POST send").into_iter().map(|call| call.body).collect();
    assert_eq!(bodies.len(), 4);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    device.with_store(|store| assert_eq!((ids(store.private_messages()), store.private_cursor()), (vec![7], 0)));
}

#[tokio::test]
async fn a_refused_send_is_not_repeated() {
    let stub = Stub::start(|_, _| Answer::Code(1_040_600_001)).await;
    let error = stub.device().send_text(UserId(2), "x").await.unwrap_err();
    assert_eq!((error.code(), stub.calls("POST send").len()), (Some(1_040_600_001), 1));
}

#[tokio::test]
async fn a_send_without_any_answer_ends_at_its_deadline() {
    let stub = Stub::start(|_, _| Answer::Cut).await;
    let config = DeviceConfig { send_deadline: Duration::from_millis(300), ..stub.device().config().clone() };
    let error = stub.device_with(config).send_text(UserId(2), "x").await.unwrap_err();
    assert!(matches!(error, ClientError::Deadline { .. }), "{error}");
    assert!(stub.calls("POST send").len() > 2);
}

#[tokio::test]
async fn an_ended_access_token_is_renewed_once_for_all_calls() {
    let stub = Stub::start(|call, _| match call.verb.as_str() {
        "POST refresh-token" => Answer::Data(json!({ "userId": 1, "accessToken": "new", "refreshToken": "refresh" })),
        _ if call.authorization == "Bearer new" => Answer::Data(json!(null)),
        _ => Answer::Code(401),
    })
    .await;
    let device = stub.device();
    let (left, right) = tokio::join!(device.peer_read(UserId(2)), device.peer_read(UserId(3)));
    assert_eq!((left.unwrap(), right.unwrap()), (None, None));
    let renewals = stub.calls("POST refresh-token");
    assert_eq!((renewals.len(), renewals[0].authorization.as_str()), (1, ""));
    assert_eq!(device.api().tokens().await.access_token, "new");
}

#[tokio::test]
async fn an_ended_sign_in_is_told() {
    let stub = Stub::start(|_, _| Answer::Code(401)).await;
    assert!(matches!(stub.device().sync().await, Err(ClientError::SignedOut)));
}

#[tokio::test]
async fn pulls_go_on_until_a_page_is_short() {
    let stub = Stub::start(|call, _| pull(call, 5)).await;
    let device = stub.device();
    assert_eq!(ids(&device.sync().await.unwrap().private), [1, 2, 3, 4, 5]);
    assert_eq!(ids(&device.sync().await.unwrap().private), [0; 0]);
    let cursors: Vec<_> = stub.calls("POST sync").iter().map(|call| call.number("privateMinId")).collect();
    assert_eq!(cursors, [0, 2, 4, 5]);
}

#[tokio::test]
async fn what_was_missed_is_pulled_after_a_reconnect_and_pushes_do_not_hide_it() {
    let newest = Arc::new(Mutex::new(1));
    let held = newest.clone();
    let mut stub = Stub::start(move |call, _| pull(call, *held.lock().unwrap())).await;
    let device = stub.device();
    let mut connection = device.connect();
    let mut socket = stub.socket().await;
    assert_eq!(until_synced(&mut connection).await, [1]);

    // 2 and 3 are lost on the way, 4 arrives.
    *newest.lock().unwrap() = 4;
    socket.send(frame(4)).await.unwrap();
    let is_new = connection.next_matching(|event| match event {
        DeviceEvent::Push { is_new, .. } => Some(is_new),
        _ => None,
    });
    assert!(is_new.await.unwrap());
    socket.close(Some(CloseFrame { code: 1013.into(), reason: "".into() })).await.unwrap();
    let event = connection.next().await;
    assert!(matches!(event, Some(DeviceEvent::Disconnected { code: Some(1013), retry_in: Some(_) })), "{event:?}");

    let _socket = stub.socket().await;
    assert_eq!(until_synced(&mut connection).await, [2, 3]);
    device.with_store(|store| assert_eq!(ids(store.private_messages()), [1, 2, 3, 4]));
}

#[tokio::test]
async fn a_failed_pull_is_tried_again() {
    let mut stub = Stub::start(|call, before| if before < 3 { Answer::Cut } else { pull(call, 3) }).await;
    let mut connection = stub.device().connect();
    let _socket = stub.socket().await;
    assert_eq!(until_synced(&mut connection).await, [1, 2, 3]);
}

#[tokio::test]
async fn a_broken_socket_comes_back() {
    let mut stub = Stub::start(|call, _| pull(call, 0)).await;
    let mut connection = stub.device().connect();
    drop(stub.socket().await);
    let code = connection.next_matching(|event| match event {
        DeviceEvent::Disconnected { code, retry_in: Some(_) } => Some(code),
        _ => None,
    });
    assert_eq!(code.await, Some(None));
    stub.socket().await;
}

#[tokio::test]
async fn a_silent_socket_is_given_up() {
    let mut stub = Stub::start(|call, _| pull(call, 0)).await;
    let config = DeviceConfig { ping_interval: Duration::from_millis(20), ..stub.device().config().clone() };
    let device = stub.device_with(config);
    let _connection = device.connect();
    let _silent = stub.socket().await;
    let mut second = stub.socket().await;
    assert_eq!(second.next().await.unwrap().unwrap(), Message::text("ping"));
}

#[tokio::test]
async fn signed_out_devices_stay_away() {
    let mut stub = Stub::start(|call, _| pull(call, 0)).await;
    let mut connection = stub.device().connect();
    let mut socket = stub.socket().await;
    until_synced(&mut connection).await;
    socket.close(Some(CloseFrame { code: 4002.into(), reason: "".into() })).await.unwrap();
    let event = connection.next().await;
    assert!(matches!(event, Some(DeviceEvent::Disconnected { code: Some(4002), retry_in: None })), "{event:?}");
    assert!(connection.next().await.is_none());
}

#[tokio::test]
async fn a_refused_token_ends_the_connection() {
    let stub = Stub::start_with(|call, _| pull(call, 0), true).await;
    let mut connection = stub.device().connect();
    let event = connection.next().await;
    assert!(matches!(event, Some(DeviceEvent::Disconnected { code: Some(4002), retry_in: None })), "{event:?}");
    assert!(connection.next().await.is_none());
}

#[tokio::test]
async fn closing_says_goodbye_and_dropping_does_not() {
    let mut stub = Stub::start(|call, _| pull(call, 0)).await;
    let device = stub.device();
    let mut connection = device.connect();
    let mut socket = stub.socket().await;
    until_synced(&mut connection).await;
    connection.close().await;
    assert!(matches!(socket.next().await, Some(Ok(Message::Close(None)))));

    let mut connection = device.connect();
    let mut socket = stub.socket().await;
    until_synced(&mut connection).await;
    drop(connection);
    assert!(!matches!(socket.next().await, Some(Ok(_))));
}

#[test]
fn futures_can_be_spawned() {
    fn is_send(_: &impl Send) {}
    let endpoint = Endpoint::new("http://127.0.0.1:1").unwrap();
    is_send(&Device::sign_in(endpoint.clone(), "", "", DeviceConfig::default()));
    let tokens =
        Tokens { user_id: UserId(1), access_token: String::new(), refresh_token: String::new(), expires_time: 0 };
    let device = Device::new(endpoint, tokens, DeviceConfig::default());
    is_send(&device.sync());
    is_send(&device.send_text(UserId(2), ""));
    is_send(&device.peer_read(UserId(2)));
}
