//! A TCP relay between the server and its PostgreSQL or MariaDB. It stops the COMMIT of a batch on its way, and lets it
//! pass, loses its answer, or loses the COMMIT itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use url::Url;

use super::app::PATIENCE;

/// How the writer commits a batch; no other commit looks like this. The drivers write it with one system call.
const BATCH_COMMIT: &[u8] = b"nudge_batch; COMMIT";

/// What becomes of a COMMIT. The last two end the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Deliver,
    /// The database commits and nobody hears of it.
    LoseAnswer,
    /// The database never gets it, and rolls back.
    LoseCommit,
}

/// A running relay; it stops with the test's runtime.
pub struct Relay {
    /// The database by way of the relay.
    pub url: String,
    armed: Arc<AtomicBool>,
    held: mpsc::Receiver<oneshot::Sender<Fate>>,
}

impl Relay {
    pub async fn start(database_url: &str) -> Relay {
        let mut url = Url::parse(database_url).unwrap();
        let target: SocketAddr = format!("127.0.0.1:{}", url.port().unwrap()).parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        let armed = Arc::new(AtomicBool::new(false));
        let (holds, held) = mpsc::channel(1);
        tokio::spawn(accept(listener, target, armed.clone(), holds));
        Relay { url: url.into(), armed, held }
    }

    /// The next COMMIT of a batch waits for [`Relay::decide`].
    pub fn stop_next_commit(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    /// Waits until a COMMIT has been stopped; it goes on when its fate is sent.
    pub async fn stopped_commit(&mut self) -> oneshot::Sender<Fate> {
        tokio::time::timeout(PATIENCE, self.held.recv()).await.expect("no batch commits").unwrap()
    }
}

async fn accept(
    listener: TcpListener,
    target: SocketAddr,
    armed: Arc<AtomicBool>,
    holds: mpsc::Sender<oneshot::Sender<Fate>>,
) {
    while let Ok((client, _)) = listener.accept().await {
        let (armed, holds) = (armed.clone(), holds.clone());
        tokio::spawn(async move {
            if let Ok(server) = TcpStream::connect(target).await {
                // Its end is the end of both connections, whatever the cause.
                let _ = carry(client, server, &armed, &holds).await;
            }
        });
    }
}

/// Carries bytes both ways until either side, or a COMMIT's fate, ends it.
async fn carry(
    mut client: TcpStream,
    mut server: TcpStream,
    armed: &AtomicBool,
    holds: &mpsc::Sender<oneshot::Sender<Fate>>,
) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut up, mut down) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let bytes = &up[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                let fate = if is_batch_commit(bytes) && armed.swap(false, Ordering::SeqCst) {
                    hold(holds).await
                } else {
                    Fate::Deliver
                };
                if fate == Fate::LoseCommit {
                    return Ok(());
                }
                server.write_all(bytes).await?;
                if fate == Fate::LoseAnswer {
                    // First for the server of ours, who may ask before the database has committed.
                    drop(client);
                    return server.read(&mut down).await.map(|_| ());
                }
            }
            read = server.read(&mut down) => {
                let bytes = &down[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                client.write_all(bytes).await?;
            }
        }
    }
}

async fn hold(holds: &mpsc::Sender<oneshot::Sender<Fate>>) -> Fate {
    let (decide, fate) = oneshot::channel();
    // A test that has ended lets everything pass.
    let _ = holds.send(decide).await;
    fate.await.unwrap_or(Fate::Deliver)
}

fn is_batch_commit(bytes: &[u8]) -> bool {
    bytes.windows(BATCH_COMMIT.len()).any(|window| window == BATCH_COMMIT)
}
