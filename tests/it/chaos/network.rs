//! A TCP relay between clients and their server, in which connections can be slowed, frozen, cut, half closed, or
//! swallowed.

use std::net::SocketAddr;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What becomes of the bytes on every connection, of sockets and of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    Fair,
    /// Each portion comes so much later.
    Slow(Duration),
    /// Connections stay open and nothing moves. Afterwards everything arrives.
    Stalled,
    /// Each direction breaks after a random number of bytes up to this, whatever they are a part of: the connection is
    /// reset, or both ends see an ordinary end.
    Cut {
        at_most: usize,
    },
    /// In one direction, at random, the sender is told that there is no more to come; the other goes on.
    HalfClosed,
    /// Bytes are swallowed. Afterwards the connection is reset.
    Swallowed,
}

/// A running relay; it stops with the test's runtime.
pub struct Network {
    /// Where clients reach the server.
    pub url: String,
    weather: watch::Sender<Weather>,
}

impl Network {
    pub async fn start(server_url: &str) -> Network {
        let target: SocketAddr = server_url.trim_start_matches("http://").parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (weather, seen) = watch::channel(Weather::Fair);
        tokio::spawn(accept(listener, target, seen));
        Network { url, weather }
    }

    pub fn turn(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, weather: watch::Receiver<Weather>) {
    while let Ok((client, _)) = listener.accept().await {
        let weather = weather.clone();
        tokio::spawn(async move {
            if let Ok(server) = TcpStream::connect(target).await {
                carry(client, server, weather).await;
            }
        });
    }
}

/// How a connection ends before both sides have said that they are done.
enum End {
    Reset,
    Plain,
}

impl From<std::io::Error> for End {
    fn from(_: std::io::Error) -> End {
        End::Plain
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, weather: watch::Receiver<Weather>) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let end = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let half_closed_up = rand::rng().random();
        let up = Pump::new(weather.clone(), half_closed_up).run(from_client, to_server);
        let down = Pump::new(weather, !half_closed_up).run(from_server, to_client);
        tokio::try_join!(up, down)
    };
    if let Err(End::Reset) = end {
        for stream in [&client, &server] {
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }
}

/// One direction of a connection.
struct Pump {
    weather: watch::Receiver<Weather>,
    rng: StdRng,
    /// Whether this is the direction that half closes.
    half_closes: bool,
    /// Bytes that still pass before the cut.
    before_cut: Option<usize>,
    has_swallowed: bool,
}

impl Pump {
    fn new(weather: watch::Receiver<Weather>, half_closes: bool) -> Pump {
        Pump { weather, rng: StdRng::from_os_rng(), half_closes, before_cut: None, has_swallowed: false }
    }

    async fn run(mut self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> Result<(), End> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            let weather = *self.weather.borrow_and_update();
            if self.has_swallowed && weather != Weather::Swallowed {
                return Err(End::Reset);
            }
            if weather == Weather::HalfClosed && self.half_closes {
                to.shutdown().await?;
                return Ok(());
            }
            let read = tokio::select! {
                read = from.read(&mut buffer), if weather != Weather::Stalled => read?,
                changed = self.weather.changed() => match changed {
                    Ok(()) => continue,
                    // The run is over.
                    Err(_) => return Err(End::Plain),
                },
            };
            if read == 0 {
                to.shutdown().await?;
                return Ok(());
            }
            self.pass(weather, &buffer[..read], &mut to).await?;
        }
    }

    async fn pass(&mut self, weather: Weather, bytes: &[u8], to: &mut WriteHalf<'_>) -> Result<(), End> {
        match weather {
            Weather::Slow(delay) => tokio::time::sleep(delay).await,
            Weather::Swallowed => {
                self.has_swallowed = true;
                return Ok(());
            }
            Weather::Cut { at_most } => {
                let left = self.before_cut.unwrap_or_else(|| self.rng.random_range(0..at_most));
                if bytes.len() >= left {
                    to.write_all(&bytes[..left]).await?;
                    return Err(if self.rng.random() { End::Reset } else { End::Plain });
                }
                self.before_cut = Some(left - bytes.len());
            }
            _ => self.before_cut = None,
        }
        Ok(to.write_all(bytes).await?)
    }
}
