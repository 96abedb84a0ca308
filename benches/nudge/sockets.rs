//! The client of the socket measurements: thousands of WebSockets on one thread, with a hand-made parser and one read
//! buffer for all, so that it costs less than the server.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::Write;
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::ChildStdin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; 256 << 10]);
}

/// The token that the database of [`crate::people::create_users`] knows for a user.
pub fn token(user: i64) -> String {
    format!("bench-token-{user}")
}

/// Connections to one server, one for each user, and how far each has got.
pub struct Crowd {
    state: Rc<RefCell<State>>,
    idle: Rc<Notify>,
}

struct State {
    publish: ChildStdin,
    connections: usize,
    /// How many connections have received each notification.
    received: Vec<usize>,
    published: usize,
    completed: usize,
    run: Run,
    /// When each notification was asked for.
    asked: Vec<Instant>,
    end: Instant,
    broken: bool,
}

/// What a stretch of notifications came to.
#[derive(Default)]
pub struct Run {
    pub deliveries: u64,
    pub elapsed: Duration,
    /// From asking for a notification until every socket had it.
    pub latencies: Vec<Duration>,
}

impl State {
    fn publish(&mut self, count: usize) {
        self.asked.resize(self.asked.len() + count, Instant::now());
        self.published += count;
        self.received.resize(self.published, 0);
        self.broken |= self.publish.write_all(&vec![b'.'; count]).is_err();
    }
}

impl Crowd {
    /// Connects the users 1 to `count`, a few at a time, with `each` sockets for a user.
    pub async fn connect(address: SocketAddr, count: i64, each: usize, publish: ChildStdin) -> anyhow::Result<Crowd> {
        let state = State {
            publish,
            connections: usize::try_from(count)? * each,
            received: Vec::new(),
            published: 0,
            completed: 0,
            run: Run::default(),
            asked: Vec::new(),
            end: Instant::now(),
            broken: false,
        };
        let crowd = Crowd { state: Rc::new(RefCell::new(state)), idle: Rc::default() };
        for first in (1..=count).step_by(32) {
            let users = (first..(first + 32).min(count + 1)).flat_map(|user| std::iter::repeat_n(user, each));
            let opening: Vec<_> = users.map(|user| actix_web::rt::spawn(open(address, user))).collect();
            for stream in opening {
                actix_web::rt::spawn(receive(stream.await??, crowd.state.clone(), crowd.idle.clone()));
            }
        }
        Ok(crowd)
    }

    /// Notifications that every socket has received.
    pub fn completed(&self) -> usize {
        self.state.borrow().completed
    }

    /// Keeps `window` notifications under way for a while.
    pub async fn run(&self, window: usize, time: Duration) -> anyhow::Result<Run> {
        let began = Instant::now();
        {
            let mut state = self.state.borrow_mut();
            state.run = Run::default();
            state.end = began + time;
            state.publish(window);
        }
        tokio::time::timeout(time * 10 + Duration::from_secs(20), self.idle.notified()).await?;
        let mut state = self.state.borrow_mut();
        ensure!(!state.broken, "a connection broke");
        Ok(Run { elapsed: began.elapsed(), ..std::mem::take(&mut state.run) })
    }
}

/// Opens the socket of a user.
pub async fn open(address: SocketAddr, user: i64) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "GET /infra/ws?token={} HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        token(user)
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    ensure!(head.starts_with(b"HTTP/1.1 101"), "refused: {}", String::from_utf8_lossy(&head));
    Ok(stream)
}

async fn receive(mut stream: TcpStream, state: Rc<RefCell<State>>, idle: Rc<Notify>) {
    let mut parser = Parser::default();
    let mut seen = 0;
    loop {
        let frames = poll_fn(|context| {
            BUFFER.with_borrow_mut(|buffer| {
                let mut buffer = ReadBuf::new(buffer);
                Pin::new(&mut stream).poll_read(context, &mut buffer).map_ok(|()| match buffer.filled() {
                    [] => None,
                    bytes => parser.count_frames(bytes).ok(),
                })
            })
        });
        let Ok(Some(frames)) = frames.await else {
            state.borrow_mut().broken = true;
            idle.notify_one();
            return;
        };
        let mut state = state.borrow_mut();
        for _ in 0..frames {
            state.run.deliveries += 1;
            state.received[seen] += 1;
            if state.received[seen] == state.connections {
                state.completed += 1;
                let latency = state.asked[seen].elapsed();
                state.run.latencies.push(latency);
                if Instant::now() < state.end {
                    state.publish(1);
                } else if state.completed == state.published {
                    idle.notify_one();
                }
            }
            seen += 1;
        }
    }
}

/// Finds the ends of a server's frames.
#[derive(Default)]
struct Parser {
    head: Vec<u8>,
    payload_left: usize,
}

impl Parser {
    /// How many frames end in these bytes.
    fn count_frames(&mut self, mut bytes: &[u8]) -> anyhow::Result<usize> {
        let mut count = 0;
        while let [first, rest @ ..] = bytes {
            if self.payload_left > 0 {
                let step = self.payload_left.min(bytes.len());
                bytes = &bytes[step..];
                self.payload_left -= step;
                count += usize::from(self.payload_left == 0);
                continue;
            }
            self.head.push(*first);
            bytes = rest;
            self.payload_left = match self.head.as_slice() {
                [0x81, 126, high, low] => usize::from(u16::from_be_bytes([*high, *low])),
                [0x81] | [0x81, 126] | [0x81, 126, _] => continue,
                [0x81, length] if *length < 126 => usize::from(*length),
                other => bail!("an unexpected frame: {other:?}"),
            };
            self.head.clear();
        }
        Ok(count)
    }
}
