//! What the kernel and tokio cost at least: a map of senders and a task for each socket that writes frames made once,
//! all that wait with one write. No actors, no limits, no reading.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use anyhow::{Context, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::child::{announce, for_every_byte, frame};

/// Frames waiting for one socket: more than any window.
const QUEUE: usize = 1_024;

type Senders = Arc<RwLock<HashMap<i64, mpsc::Sender<Bytes>>>>;

pub fn serve(users: i64) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        announce(listener.local_addr()?)?;
        let senders = Senders::default();
        let map = senders.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_socket(stream, map.clone()));
            }
        });
        let (publish, mut published) = mpsc::channel(QUEUE);
        std::thread::spawn(move || for_every_byte(|| Ok(publish.blocking_send(())?)));
        let mut number = 0;
        while published.recv().await.is_some() {
            number += 1;
            send_to_all(&senders, users, number)?;
        }
        Ok(())
    })
}

fn send_to_all(senders: &Senders, users: i64, number: i64) -> anyhow::Result<()> {
    let text = frame(number)?.text;
    let mut bytes = BytesMut::with_capacity(text.len() + 4);
    bytes.put_slice(&[0x81, 126]);
    bytes.put_u16(u16::try_from(text.len())?);
    bytes.put_slice(text.as_bytes());
    let bytes = bytes.freeze();
    let senders = senders.read().map_err(|_| anyhow::anyhow!("poisoned"))?;
    for user in 1..=users {
        if let Some(sender) = senders.get(&user) {
            sender.try_send(bytes.clone())?;
        }
    }
    Ok(())
}

async fn serve_socket(mut stream: TcpStream, senders: Senders) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let user = shake_hands(&mut stream).await?;
    let (sender, mut queue) = mpsc::channel(QUEUE);
    senders.write().map_err(|_| anyhow::anyhow!("poisoned"))?.insert(user, sender);
    let mut waiting = Vec::new();
    loop {
        if queue.recv_many(&mut waiting, 64).await == 0 {
            return Ok(());
        }
        match waiting.as_slice() {
            [one] => stream.write_all(one).await?,
            many => stream.write_all(&many.concat()).await?,
        }
        waiting.clear();
    }
}

/// Answers the handshake; the user is the number at the end of the token.
async fn shake_hands(stream: &mut TcpStream) -> anyhow::Result<i64> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        ensure!(stream.read_buf(&mut head).await? > 0, "gone");
    }
    let head = String::from_utf8(head)?;
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).context("no key")?;
    let token = head.split(' ').nth(1).context("no path")?;
    let user = token.rsplit('-').next().context("no token")?.parse()?;
    let accept = derive_accept_key(key.as_bytes());
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).await?;
    Ok(user)
}
