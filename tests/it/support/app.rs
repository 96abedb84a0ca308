//! A server inside the test, with a database of its own, and people who use it over HTTP and WebSocket.
//!
//! People are made through the server API, because hashing a password takes longer than most tests.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use nudge::clock::Clock;
use nudge::config::Config;
use nudge::db::StatementHook;
use nudge::db::connect::Source;
use nudge::server::{Seams, Server};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

pub use super::clock::ManualClock;
use super::databases::{Backend, Schema, TestDatabase};
pub use super::push::{Push, parse_push};
pub use super::waiting::eventually;

/// The key of the server API in tests.
pub const API_KEY: &str = "a key for the tests";
/// How long a test waits for what must happen.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The server's own schema.
pub const SCHEMA: Schema = Schema {
    name: "nudge",
    migrate: |url| {
        async move {
            let source = Source::parse(&url.to_owned().into())?;
            nudge::db::migrate::migrate(&source).await.map(|_| ())
        }
        .boxed_local()
    },
};

/// A running server and its database. It stops with the test's runtime.
pub struct TestApp {
    pub server: Server,
    pub database: TestDatabase,
    pub base: String,
    pub http: reqwest::Client,
    next: AtomicUsize,
}

/// What a test wants different.
#[derive(Default)]
pub struct Setup {
    pub config: Config,
    pub clock: Option<Clock>,
    pub read_hook: Option<StatementHook>,
}

impl TestApp {
    pub async fn start(backend: Backend) -> TestApp {
        Self::start_with(backend, Setup::default()).await
    }

    pub async fn start_with(backend: Backend, setup: Setup) -> TestApp {
        let database = TestDatabase::create(backend, SCHEMA).await;
        let server = start_server(&database.url, setup).await;
        TestApp {
            base: format!("http://{}", server.address()),
            server,
            database,
            http: http_client(),
            next: AtomicUsize::new(0),
        }
    }

    /// A new person, signed in.
    pub async fn user(&self, name: &str) -> Person {
        let external_id = format!("{name}-{}", self.next.fetch_add(1, Ordering::Relaxed));
        Person::create(&self.http, &self.base, &external_id, name).await
    }

    /// Whoever bears a token, for opening sockets with it.
    pub fn guest(&self, token: &str) -> Person {
        let login = json!({"userId": 0, "accessToken": token, "refreshToken": token});
        Person::with_login(&self.http, &self.base, &login)
    }

    /// Two people who are friends.
    pub async fn friends(&self, a: &str, b: &str) -> (Person, Person) {
        let (a, b) = (self.user(a).await, self.user(b).await);
        befriend(&a, &b).await;
        (a, b)
    }
}

/// Starts a server on a database, in this process.
pub async fn start_server(url: &str, setup: Setup) -> Server {
    let mut config = setup.config;
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.database_url = Some(url.to_owned().into());
    config.api_key = Some(API_KEY.to_owned().into());
    config.workers = 1;
    if config.data_dir == Config::default().data_dir {
        // Only uploads go there, under names that nobody shares.
        config.data_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("data");
    }
    config.websocket.shutdown_window_ms = 10;
    let seams = Seams { clock: setup.clock, read_hook: setup.read_hook };
    Server::start(config, seams).await.unwrap()
}

/// A client that never waits for a connection of a pool to be noticed as closed.
pub fn http_client() -> reqwest::Client {
    reqwest::Client::builder()
        .pool_idle_timeout(Duration::from_secs(4))
        .timeout(Duration::from_secs(60))
        .build()
        .unwrap()
}

/// Makes two people friends, the ordinary way.
pub async fn befriend(a: &Person, b: &Person) {
    let request = a.post("/im/friend-request/apply", json!({"toUserId": b.id})).await;
    b.put(&format!("/im/friend-request/agree?id={request}")).await;
}

/// Somebody with a login, on one server.
#[derive(Clone)]
pub struct Person {
    pub id: i64,
    pub external_id: String,
    pub access_token: String,
    pub refresh_token: String,
    base: String,
    http: reqwest::Client,
}

impl Person {
    /// Makes (or finds) the account of an external id, and signs it in.
    pub async fn create(http: &reqwest::Client, base: &str, external_id: &str, nickname: &str) -> Person {
        let users = json!({"users": [{"externalId": external_id, "nickname": nickname}]});
        server_api(http, base, "/users", users).await;
        Self::sign_in(http, base, external_id).await
    }

    /// A new login of an account that exists.
    pub async fn sign_in(http: &reqwest::Client, base: &str, external_id: &str) -> Person {
        Self::sign_in_all(http, base, &[external_id.to_owned()]).await.remove(0)
    }

    /// New logins of accounts that exist.
    pub async fn sign_in_all(http: &reqwest::Client, base: &str, external_ids: &[String]) -> Vec<Person> {
        let tokens = server_api(http, base, "/tokens", json!({"externalIds": external_ids})).await;
        let person = |(tokens, external_id): (&Value, &String)| Person {
            external_id: external_id.clone(),
            ..Self::with_login(http, base, tokens)
        };
        tokens.as_array().unwrap().iter().zip(external_ids).map(person).collect()
    }

    /// Whoever has just signed in: the answer to that.
    pub fn with_login(http: &reqwest::Client, base: &str, login: &Value) -> Person {
        Person {
            id: login["userId"].as_i64().unwrap(),
            external_id: String::new(),
            access_token: login["accessToken"].as_str().unwrap().to_owned(),
            refresh_token: login["refreshToken"].as_str().unwrap().to_owned(),
            base: base.to_owned(),
            http: http.clone(),
        }
    }

    /// The same person, with a new login.
    pub async fn sign_in_again(&self) -> Person {
        Self::sign_in(&self.http, &self.base, &self.external_id).await
    }

    /// The same login, on another server of the same database.
    pub fn on(&self, base: &str) -> Person {
        Person { base: base.to_owned(), ..self.clone() }
    }

    /// A call whose whole answer (`code`, `msg`, `data`) matters.
    pub async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        self.try_call(method, path, body).await.unwrap()
    }

    /// A call that the network may fail.
    pub async fn try_call(&self, method: &str, path: &str, body: Option<Value>) -> reqwest::Result<Value> {
        let url = format!("{}/admin-api{path}", self.base);
        let mut request =
            self.http.request(method.parse().unwrap(), url).header("tenant-id", "1").bearer_auth(&self.access_token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        request.send().await?.error_for_status()?.json().await
    }

    pub async fn get(&self, path: &str) -> Value {
        data(self.call("GET", path, None).await)
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        data(self.call("POST", path, Some(body)).await)
    }

    pub async fn put(&self, path: &str) -> Value {
        data(self.call("PUT", path, None).await)
    }

    pub async fn delete(&self, path: &str) -> Value {
        data(self.call("DELETE", path, None).await)
    }

    /// Sends a text; the stored row.
    pub async fn send(&self, to: &Person, text: &str) -> Value {
        data(self.send_as(to, &random_id(), text).await)
    }

    /// Sends a text under a client id; the whole answer.
    pub async fn send_as(&self, to: &Person, client_message_id: &str, text: &str) -> Value {
        self.call("POST", "/im/message/private/send", Some(text_message(to.id, client_message_id, text))).await
    }

    /// Everything that a pull from the beginning gives, page by page.
    pub async fn pull_all(&self, size: usize) -> Vec<Value> {
        self.pull_from(0, size).await
    }

    /// Everything after an id, page by page, until the page that is not full.
    pub async fn pull_from(&self, mut min_id: i64, size: usize) -> Vec<Value> {
        let mut rows = Vec::new();
        loop {
            let page = self.get(&format!("/im/message/private/pull?minId={min_id}&size={size}")).await;
            let page = page.as_array().unwrap();
            rows.extend(page.iter().cloned());
            match page.last() {
                Some(last) if page.len() == size => min_id = last["id"].as_i64().unwrap(),
                _ => return rows,
            }
        }
    }

    pub async fn read(&self, peer: &Person, message_id: i64) {
        self.put(&format!("/im/message/private/read?receiverId={}&messageId={message_id}", peer.id)).await;
    }

    /// Opens a socket with the refresh token, for what is pushed from now on: without a replay of what was pushed while
    /// an earlier socket was dying. Tests of the replay are in `resume`.
    pub async fn connect(&self) -> Socket {
        self.try_connect("&resume=0").await.unwrap()
    }

    /// Opens a socket with further query parameters; the error is the HTTP status of the refusal.
    pub async fn try_connect(&self, parameters: &str) -> Result<Socket, u16> {
        Socket::open(self, parameters).await
    }
}

/// A message body for `send`.
pub fn text_message(receiver: i64, client_message_id: &str, text: &str) -> Value {
    let content = json!({"content": text}).to_string();
    json!({"clientMessageId": client_message_id, "receiverId": receiver, "type": 101, "content": content})
}

/// A fresh client message id.
pub fn random_id() -> String {
    use rand::Rng;
    format!("{:032x}", rand::rng().random::<u128>())
}

/// The `data` of an answer that must be a success.
pub fn data(answer: Value) -> Value {
    assert_eq!(answer["code"], 0, "{answer}");
    answer["data"].clone()
}

pub fn id_of(message: &Value) -> i64 {
    message["id"].as_i64().unwrap_or_else(|| panic!("no id in {message}"))
}

pub fn ids_of(messages: &[Value]) -> Vec<i64> {
    messages.iter().map(id_of).collect()
}

/// A call of the server API; its `data`.
pub async fn server_api(http: &reqwest::Client, base: &str, path: &str, body: Value) -> Value {
    let request = http.post(format!("{base}/api/v1{path}")).header("x-api-key", API_KEY).json(&body);
    data(request.send().await.unwrap().json().await.unwrap())
}

/// A WebSocket of a foreign implementation.
pub struct Socket {
    person: Person,
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Socket {
    async fn open(person: &Person, parameters: &str) -> Result<Socket, u16> {
        let base = person.base.replacen("http", "ws", 1);
        let url = format!("{base}/infra/ws?token={}{parameters}", person.refresh_token);
        match tokio_tungstenite::connect_async(url).await {
            // Access tokens are short-lived and replaced; the refresh token speaks for the login as long as the socket.
            Ok((stream, _)) => {
                let person = Person { access_token: person.refresh_token.clone(), ..person.clone() };
                Ok(Socket { person, stream })
            }
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("cannot connect: {error}"),
        }
    }

    /// The next text frame; protocol frames are answered and passed over. `None` when the socket has ended.
    async fn next_text(&mut self) -> Option<String> {
        loop {
            match tokio::time::timeout(PATIENCE, self.stream.next()).await.expect("nothing arrived") {
                Some(Ok(Message::Text(text))) => return Some(text.to_string()),
                Some(Ok(Message::Close(_))) | Some(Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// The next notification; `None` at the end of the socket.
    pub async fn try_next(&mut self) -> Option<Push> {
        self.next_text().await.map(|text| parse_push(&text))
    }

    /// The next notification.
    pub async fn next(&mut self) -> Push {
        self.try_next().await.expect("the socket ended")
    }

    /// The next notification of a content type; others are passed over.
    pub async fn next_of(&mut self, content_type: i64) -> Push {
        loop {
            let push = self.next().await;
            if push.content_type == content_type {
                return push;
            }
        }
    }

    /// Every notification that was sent to this socket before now. The registry answers a question after it has routed
    /// what was handed to it before, and the session answers a `ping` after what was routed to it before.
    pub async fn drain(&mut self) -> Vec<Push> {
        self.person.get("/im/session/list").await;
        self.send(Message::text("ping")).await;
        let mut pushes = Vec::new();
        loop {
            match self.next_text().await.expect("the socket ended").as_str() {
                "pong" => return pushes,
                text => pushes.push(parse_push(text)),
            }
        }
    }

    /// Waits for the end; the code of the close frame, if there was one.
    pub async fn closed(&mut self) -> Option<u16> {
        loop {
            match tokio::time::timeout(PATIENCE, self.stream.next()).await.expect("the socket did not end") {
                Some(Ok(Message::Close(frame))) => return frame.map(|frame| frame.code.into()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }

    pub async fn send(&mut self, message: Message) {
        self.stream.send(message).await.unwrap();
    }

    /// Ends the connection the orderly way.
    pub async fn close(mut self) {
        let _ = self.stream.close(None).await;
        while self.stream.next().await.is_some_and(|message| message.is_ok()) {}
    }
}
