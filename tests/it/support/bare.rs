//! A WebSocket without a library: it reads frames one by one, and answers pings only when its test wants it to.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::app::{PATIENCE, Person, Push, id_of, parse_push};

/// An open socket. Dropped, it is cut.
pub struct BareSocket {
    person: Person,
    stream: TcpStream,
}

/// A frame of the server.
#[derive(Clone, Debug, PartialEq)]
pub enum BareFrame {
    Text(String),
    Ping(Vec<u8>),
    Pong,
    Close(u16),
}

impl BareSocket {
    /// Opens a socket with further query parameters. Little waits in its own receive buffer.
    pub async fn open(person: &Person, base: &str, parameters: &str) -> BareSocket {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 << 10).unwrap();
        let mut stream = socket.connect(base.trim_start_matches("http://").parse().unwrap()).await.unwrap();
        let request = format!(
            "GET /infra/ws?token={}{parameters} HTTP/1.1\r\nHost: nudge\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
            person.refresh_token
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
        BareSocket { person: person.on(base), stream }
    }

    /// The next frame; an error at the end of the connection.
    pub async fn frame(&mut self) -> std::io::Result<BareFrame> {
        tokio::time::timeout(PATIENCE, self.read_frame()).await.expect("nothing arrived")
    }

    async fn read_frame(&mut self) -> std::io::Result<BareFrame> {
        let opcode = self.stream.read_u8().await? & 0x0f;
        let length = match self.stream.read_u8().await? {
            126 => usize::from(self.stream.read_u16().await?),
            127 => usize::try_from(self.stream.read_u64().await?).unwrap(),
            length => usize::from(length),
        };
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await?;
        Ok(match opcode {
            1 => BareFrame::Text(String::from_utf8(payload).unwrap()),
            8 => BareFrame::Close(u16::from_be_bytes([payload[0], payload[1]])),
            9 => BareFrame::Ping(payload),
            10 => BareFrame::Pong,
            other => panic!("a frame with opcode {other}"),
        })
    }

    /// Sends a short frame, masked with zeros.
    async fn send(&mut self, opcode: u8, payload: &[u8]) {
        let mut frame = vec![0x80 | opcode, 0x80 | u8::try_from(payload.len()).unwrap(), 0, 0, 0, 0];
        frame.extend(payload);
        self.stream.write_all(&frame).await.unwrap();
    }

    pub async fn send_text(&mut self, text: &str) {
        self.send(1, text.as_bytes()).await;
    }

    pub async fn pong(&mut self, payload: &[u8]) {
        self.send(10, payload).await;
    }

    /// Everything up to the next ping, which is not answered: pushes, and its payload.
    pub async fn until_ping(&mut self) -> (Vec<Push>, Vec<u8>) {
        let mut pushes = Vec::new();
        loop {
            match self.frame().await.unwrap() {
                BareFrame::Text(text) if text == "pong" => {}
                BareFrame::Text(text) => pushes.push(parse_push(&text)),
                BareFrame::Ping(payload) => return (pushes, payload),
                other => panic!("{other:?} instead of a ping"),
            }
        }
    }

    /// The ids of the next stored rows, so many of them; pings are answered.
    pub async fn take_stored(&mut self, count: usize) -> Vec<i64> {
        let mut ids = Vec::new();
        while ids.len() < count {
            match self.frame().await.unwrap() {
                BareFrame::Text(text) if text == "pong" => {}
                BareFrame::Text(text) => ids.extend(stored_ids(&[parse_push(&text)])),
                BareFrame::Ping(payload) => self.pong(&payload).await,
                other => panic!("{other:?} after {} rows", ids.len()),
            }
        }
        ids
    }

    /// Everything that was sent to this socket before now, as [`super::app::Socket::drain`] has it. Protocol pings stay
    /// unanswered.
    pub async fn drain(&mut self) -> Vec<Push> {
        self.person.get("/im/session/list").await;
        self.send_text("ping").await;
        let mut pushes = Vec::new();
        loop {
            match self.frame().await.unwrap() {
                BareFrame::Text(text) if text == "pong" => return pushes,
                BareFrame::Text(text) => pushes.push(parse_push(&text)),
                BareFrame::Ping(_) | BareFrame::Pong => {}
                BareFrame::Close(code) => panic!("closed with {code}"),
            }
        }
    }

    /// The code of the close frame, after whatever comes before it; none where the connection just ends.
    pub async fn closed(&mut self) -> Option<u16> {
        loop {
            match self.frame().await {
                Ok(BareFrame::Close(code)) => return Some(code),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

/// The rows that pushes of stored messages carry.
pub fn stored_rows(pushes: &[Push]) -> Vec<Value> {
    let rows = pushes.iter().map(|push| push.payload.clone());
    rows.filter(|row| row["clientMessageId"].is_string() && row["id"].is_number()).collect()
}

/// Their ids.
pub fn stored_ids(pushes: &[Push]) -> Vec<i64> {
    stored_rows(pushes).iter().map(id_of).collect()
}
