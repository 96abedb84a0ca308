//! A bad line between a client and the server: a TCP relay that loses what the server sends, and breaks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A running relay; it stops with the test's runtime.
pub struct BadLine {
    /// The server by way of the line.
    pub base: String,
    loses: Arc<AtomicBool>,
    /// Counts the breaks.
    breaks: watch::Sender<u64>,
}

impl BadLine {
    /// A line to the server at `base` (`http://address:port`).
    pub async fn start(base: &str) -> BadLine {
        let target: SocketAddr = base.trim_start_matches("http://").parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let loses = Arc::new(AtomicBool::new(false));
        let breaks = watch::Sender::new(0);
        tokio::spawn(accept(listener, target, loses.clone(), breaks.clone()));
        BadLine { base, loses, breaks }
    }

    /// From now on what the server sends is taken from it and lost; it believes it sent.
    pub fn lose(&self) {
        self.loses.store(true, Ordering::SeqCst);
    }

    /// Ends every connection, on both sides. New ones lose nothing.
    pub fn break_off(&self) {
        self.breaks.send_modify(|count| *count += 1);
        self.loses.store(false, Ordering::SeqCst);
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, loses: Arc<AtomicBool>, breaks: watch::Sender<u64>) {
    while let Ok((client, _)) = listener.accept().await {
        let (loses, mut broken) = (loses.clone(), breaks.subscribe());
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(target).await else { return };
            tokio::select! {
                _ = carry(client, server, &loses) => {}
                _ = broken.changed() => {}
            }
        });
    }
}

/// Carries bytes both ways until either side ends it. What is lost once makes the rest useless: a connection that has
/// lost something loses everything.
async fn carry(mut client: TcpStream, mut server: TcpStream, loses: &AtomicBool) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut up, mut down) = (vec![0; 16 << 10], vec![0; 16 << 10]);
    let mut has_lost = false;
    loop {
        tokio::select! {
            read = client.read(&mut up) => match read? {
                0 => return Ok(()),
                count => server.write_all(&up[..count]).await?,
            },
            read = server.read(&mut down) => {
                let count = read?;
                if count == 0 {
                    return Ok(());
                }
                has_lost |= loses.load(Ordering::SeqCst);
                if !has_lost {
                    client.write_all(&down[..count]).await?;
                }
            }
        }
    }
}
