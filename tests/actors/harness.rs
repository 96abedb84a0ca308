//! A server that does nothing but open sessions, and clients for it: a proper one, and one that speaks raw bytes.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actix_web::dev::Payload;
use actix_web::{App, FromRequest, HttpRequest, HttpResponse, HttpServer, web};
use futures_util::{SinkExt, StreamExt};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use nudge::actors::{OpenError, Registry, SessionIdentity, open_session, prepare_connection};
use nudge::config::WebSocketConfig;
use nudge::domain::ids::{LoginId, UserId};
use nudge::protocol::close::CloseReason;
use nudge::protocol::frame::{Frame, FrameClass, Notification, Stream};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Longer than anything here should take; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct TestServer {
    pub registry: Registry,
    pub address: SocketAddr,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Query {
    user: i64,
    login: i64,
    expires_in_ms: Option<i64>,
    /// What the handler does after the attach: `revoke`, `fail`, or `abandon` (drops the future in the middle); with
    /// `panic` the session panics a moment later.
    then: Option<String>,
}

async fn socket(
    request: HttpRequest,
    payload: web::Payload,
    query: web::Query<Query>,
    state: web::Data<(Registry, WebSocketConfig)>,
) -> HttpResponse {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let identity = SessionIdentity {
        user: UserId(query.user),
        login: LoginId(query.login),
        expires_at_ms: now + query.expires_in_ms.unwrap_or(3_600_000),
        device: Some("test".into()),
        platform: None,
        address: request.peer_addr().map(|address| address.ip()),
    };
    let payload = if query.then.as_deref() == Some("panic") { panicking(&request).await } else { payload };
    let opening = open_session(&request, payload, &state.0, &state.1, identity, None);
    if query.then.as_deref() == Some("abandon") {
        let mut opening = Box::pin(opening);
        // Mostly it is pending now; either way it ends here.
        let _ = futures_util::poll!(opening.as_mut());
        return HttpResponse::ImATeapot().finish();
    }
    match opening.await {
        Ok(_) if query.then.as_deref() == Some("fail") => HttpResponse::ImATeapot().finish(),
        Ok(open) => {
            if query.then.as_deref() == Some("revoke") {
                open.handle.close(CloseReason::SignedOut);
            }
            open.response
        }
        Err(OpenError::TooManySessions) => HttpResponse::TooManyRequests().finish(),
        Err(OpenError::Stopping) => HttpResponse::ServiceUnavailable().finish(),
        Err(OpenError::Replay(error)) => panic!("no replay was asked for: {error}"),
        Err(OpenError::Handshake(_)) => HttpResponse::BadRequest().finish(),
    }
}

/// What the session reads instead of its connection: a little later it panics, inside of the session.
async fn panicking(request: &HttpRequest) -> web::Payload {
    let stream = futures_util::stream::once(async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        panic!("as a test wants it")
    });
    let mut payload = Payload::Stream { payload: stream.boxed_local() };
    web::Payload::from_request(request, &mut payload).await.unwrap()
}

impl TestServer {
    pub async fn start(config: WebSocketConfig) -> TestServer {
        recorder();
        let registry = Registry::start(config.clone());
        let state = web::Data::new((registry.clone(), config.clone()));
        let server = HttpServer::new(move || App::new().app_data(state.clone()).route("/ws", web::get().to(socket)))
            .on_connect(move |connection, data| prepare_connection(connection, data, &config))
            .h1_write_buffer_size(16 << 10)
            .workers(1)
            .disable_signals()
            .bind(("127.0.0.1", 0))
            .unwrap();
        let address = server.addrs()[0];
        actix_web::rt::spawn(server.run());
        TestServer { registry, address }
    }

    /// Connects as `user`, with login 1.
    pub async fn connect(&self, user: i64) -> Client {
        self.try_connect(&format!("user={user}&login=1")).await.unwrap()
    }

    /// The error is the HTTP status.
    pub async fn try_connect(&self, query: &str) -> Result<Client, u16> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let url = format!("ws://{}/ws?{query}", self.address);
        match within(tokio_tungstenite::client_async(url, stream)).await {
            Ok((socket, _)) => Ok(Client { socket }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// A connection after its handshake, with a small receive buffer.
    pub async fn connect_raw(&self, user: i64) -> Raw {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(8 << 10).unwrap();
        let mut stream = socket.connect(self.address).await.unwrap();
        let request = format!(
            "GET /ws?user={user}&login=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(within(stream.read_u8()).await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Raw { stream }
    }

    /// Pushes a stored frame whose text is its id, padded to `bytes`.
    pub fn push(&self, user: i64, id: i64, bytes: usize) {
        self.registry.notify(vec![notification(&[user], id, bytes)]).unwrap();
    }

    pub async fn sessions(&self) -> usize {
        self.registry.counts().await.sessions
    }

    /// Waits until this many sessions are left; they are gone with their sockets.
    pub async fn wait_for_sessions(&self, expected: usize) {
        wait_until("the number of sessions", async || self.sessions().await == expected).await;
        if expected == 0 {
            assert_eq!(self.registry.counts().await.users, 0);
            assert_eq!((self.registry.in_flight_bytes(), self.registry.backlog()), (0, 0));
        }
    }

    pub async fn wait_until_routed(&self) {
        wait_until("the backlog", async || self.registry.backlog() == 0).await;
    }
}

pub fn notification(users: &[i64], id: i64, bytes: usize) -> Notification {
    let receivers: Arc<[UserId]> = users.iter().map(|user| UserId(*user)).collect();
    Notification { receivers, frame: stored(id, bytes) }
}

pub fn stored(id: i64, bytes: usize) -> Frame {
    let mut text = id.to_string();
    text.extend(std::iter::repeat_n(' ', bytes.saturating_sub(text.len())));
    Frame::new(text.into(), FrameClass::Stored { stream: Stream::Private, id })
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("took too long")
}

pub async fn wait_until(what: &str, condition: impl AsyncFn() -> bool) {
    let began = std::time::Instant::now();
    while !condition().await {
        assert!(began.elapsed() < PATIENCE, "waited too long for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn recorder() -> &'static PrometheusHandle {
    static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();
    RECORDER.get_or_init(|| PrometheusBuilder::new().install_recorder().unwrap())
}

/// Sessions that ended for this reason, in the whole test process.
pub fn closes(reason: &str) -> u64 {
    let start = format!("nudge_closes_total{{reason=\"{reason}\"}} ");
    let text = recorder().render();
    text.lines().find_map(|line| line.strip_prefix(&start)).map_or(0, |value| value.parse().unwrap())
}

/// A client that keeps the protocol: pings are answered while it reads.
pub struct Client {
    socket: WebSocketStream<TcpStream>,
}

impl Client {
    pub async fn send(&mut self, message: Message) {
        within(self.socket.send(message)).await.unwrap();
    }

    /// The next text, or `Err` with the close code (1006 without one).
    pub async fn next(&mut self) -> Result<String, u16> {
        loop {
            match within(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return Ok(text.trim_end().to_owned()),
                Some(Ok(Message::Close(frame))) => return Err(frame.map_or(1005, |frame| frame.code.into())),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(1006),
            }
        }
    }

    pub async fn next_raw(&mut self) -> Message {
        within(self.socket.next()).await.unwrap().unwrap()
    }

    pub async fn next_id(&mut self) -> Result<i64, u16> {
        self.next().await.map(|text| text.parse().unwrap())
    }

    /// Reads on until the close.
    pub async fn close_code(&mut self) -> u16 {
        loop {
            if let Err(code) = self.next().await {
                return code;
            }
        }
    }

    pub async fn close(mut self) {
        let _ = self.socket.close(None).await;
        self.close_code().await;
    }
}

/// A client that sends what bytes it likes.
pub struct Raw {
    pub stream: TcpStream,
}

impl Raw {
    pub async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        within(self.stream.write_all(bytes)).await
    }

    /// The next frame: opcode and payload; an I/O error at the end.
    pub async fn frame(&mut self) -> std::io::Result<(u8, Vec<u8>)> {
        within(async {
            let opcode = self.stream.read_u8().await? & 0x0f;
            let length = match self.stream.read_u8().await? {
                126 => self.stream.read_u16().await? as usize,
                127 => self.stream.read_u64().await? as usize,
                length => length as usize,
            };
            let mut payload = vec![0; length];
            self.stream.read_exact(&mut payload).await?;
            Ok((opcode, payload))
        })
        .await
    }

    /// Reads on until the close frame; 1006 if the connection ends without one.
    pub async fn close_code(&mut self) -> u16 {
        loop {
            match self.frame().await {
                Ok((8, payload)) => return u16::from_be_bytes([payload[0], payload[1]]),
                Ok(_) => {}
                Err(_) => return 1006,
            }
        }
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }
}

/// A client's frame, masked with zeros.
pub fn frame(opcode: u8, is_final: bool, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![opcode | if is_final { 0x80 } else { 0 }];
    match payload.len() {
        length @ 0..=125 => bytes.push(0x80 | length as u8),
        length @ 126..=0xffff => {
            bytes.push(0x80 | 126);
            bytes.extend((length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}
