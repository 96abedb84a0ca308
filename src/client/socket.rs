//! One WebSocket: the handshake with the refresh token, text frames, pings, and the end. Who reconnects is
//! `connection.rs`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::protocol::{Message, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use url::Url;

/// A device mostly waits: with these buffers an idle socket costs a few KiB instead of the library's 256.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// We write nothing but pings, pongs and close frames.
const MAX_WRITE_BUFFER_BYTES: usize = 64 * 1024;
/// Over any frame that the server sends (a content of 192 KiB, escaped twice).
const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;
/// How long a close frame may take to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    /// The server answered the handshake with this HTTP status.
    #[error("handshake refused with HTTP status {0}")]
    Refused(u16),
    #[error("no handshake: {0}")]
    Failed(String),
}

/// Where a socket goes, and from where.
#[derive(Debug)]
pub(super) struct SocketAddress {
    /// It holds a token: never log it.
    pub url: Url,
    /// The local address to come from; `None` leaves it to the system.
    pub source: Option<IpAddr>,
}

/// What came out of a wait on the socket.
#[derive(Debug)]
pub(super) enum Received {
    Text(Utf8Bytes),
    /// The socket is gone: with the close frame's code, or without one where the connection broke or fell silent.
    Ended(Option<u16>),
}

/// An open socket.
#[derive(Debug)]
pub(super) struct Socket {
    stream: WebSocketStream<TcpStream>,
    ping_interval: Duration,
    next_ping: Instant,
    last_frame: Instant,
}

impl Socket {
    /// Opens a socket. The token of its address appears in no error.
    pub(super) async fn connect(
        address: &SocketAddress,
        ping_interval: Duration,
        connect_timeout: Duration,
    ) -> Result<Socket, HandshakeError> {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(MAX_WRITE_BUFFER_BYTES)
            .max_message_size(Some(MAX_FRAME_BYTES))
            .max_frame_size(Some(MAX_FRAME_BYTES));
        let handshake = async {
            let stream = open(address).await.map_err(Error::Io)?;
            client_async_with_config(address.url.as_str(), stream, Some(config)).await
        };
        let (stream, _) = match timeout(connect_timeout, handshake).await {
            Ok(Ok(connected)) => connected,
            Ok(Err(Error::Http(answer))) => return Err(HandshakeError::Refused(answer.status().as_u16())),
            Ok(Err(Error::Url(_))) => return Err(HandshakeError::Failed("the address is not usable".to_owned())),
            Ok(Err(error)) => return Err(HandshakeError::Failed(error.to_string())),
            Err(_) => return Err(HandshakeError::Failed("timed out".to_owned())),
        };
        let now = Instant::now();
        // Thousands of devices that connect together should not ping together.
        let next_ping = now + ping_interval.mul_f64(rand::random());
        Ok(Socket { stream, ping_interval, next_ping, last_frame: now })
    }

    /// Waits for the next text frame, and pings meanwhile. No frame at all, not even a pong, for two and a half ping
    /// intervals is the end. Safe to cancel.
    pub(super) async fn next(&mut self) -> Received {
        loop {
            let now = Instant::now();
            if now >= self.next_ping {
                self.next_ping = now + self.ping_interval;
                if self.stream.send(Message::text("ping")).await.is_err() {
                    return Received::Ended(None);
                }
            }
            let silent_at = self.last_frame + self.ping_interval.mul_f64(2.5);
            tokio::select! {
                // What has arrived counts before what has not: after a pause of ours there is a frame, not silence.
                biased;
                frame = self.stream.next() => {
                    self.last_frame = Instant::now();
                    match frame {
                        Some(Ok(Message::Text(text))) => return Received::Text(text),
                        Some(Ok(Message::Close(frame))) => {
                            // Writes the answer to the close frame, so that the server need not wait for it.
                            let _ = timeout(CLOSE_TIMEOUT, self.stream.flush()).await;
                            return Received::Ended(frame.map(|frame| frame.code.into()));
                        }
                        Some(Ok(_)) => {}
                        Some(Err(_)) | None => return Received::Ended(None),
                    }
                }
                () = sleep_until(self.next_ping.min(silent_at)) => {
                    if Instant::now() >= silent_at {
                        return Received::Ended(None);
                    }
                }
            }
        }
    }

    /// Says goodbye; dropping the socket just cuts it.
    pub(super) async fn close(mut self) {
        let _ = timeout(CLOSE_TIMEOUT, self.stream.close(None)).await;
    }
}

/// A TCP connection to the address, to the first of its host's addresses that answers.
async fn open(address: &SocketAddress) -> io::Result<TcpStream> {
    let host = address.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for target in lookup_host((host, address.url.port_or_known_default().unwrap_or(80))).await? {
        match open_to(target, address.source).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn open_to(target: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = if target.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(source) = source {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    socket.set_nodelay(true)?;
    socket.connect(target).await
}
