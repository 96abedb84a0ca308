//! The servers under measurement, each in a process of its own: the whole of Nudge, or a raw tokio sender.
//!
//! This program starts itself with the arguments `child nudge <database URL> <users>`, `child single <database URL>`
//! (one command a transaction), `child beating <database URL>` (with the heartbeat of the defaults),
//! `child group <database URL>` or `child raw <users>`. The child prints its address, and for every byte on its standard
//! input pushes one notification to all users (`group`: sends a message to the group 1, as its owner, the user 1). It ends
//! with its input.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, bail};
use nudge::config::Config;
use nudge::domain::content::{ContentType, content_hash, parse_content};
use nudge::domain::conversation::ConversationType;
use nudge::domain::ids::{GroupId, MessageId, UserId};
use nudge::domain::private_message::PrivateMessage;
use nudge::protocol::frame::{Frame, FrameClass, Notification, Stream};
use nudge::protocol::payload::PrivateMessageBody;
use nudge::server::{Seams, Server};
use nudge::service::group_messages::GroupDraft;
use nudge::telemetry;

use crate::{machine, raw_server};

/// What every message says.
pub const CONTENT: &str = r#"{"content":"about as long as what people write to each other"}"#;

pub const ROLE: &str = "child";
/// The servers' core where processes can be pinned; the client takes the other one.
const SERVER_CORE: usize = 0;

/// A running child.
pub struct ServerChild {
    pub process: Child,
    pub address: SocketAddr,
    /// A byte is a notification.
    pub publish: Option<ChildStdin>,
}

impl ServerChild {
    pub fn start(arguments: &[&str]) -> anyhow::Result<ServerChild> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(ROLE).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        machine::pin(process.id(), SERVER_CORE);
        let publish = process.stdin.take();
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("piped")?).read_line(&mut line)?;
        let address = line.trim().parse().context("the child did not start")?;
        machine::pin(process.id(), SERVER_CORE);
        Ok(ServerChild { process, address, publish })
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for ServerChild {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Plays a server until standard input ends.
pub fn serve(kind: &str, arguments: &[&str]) -> anyhow::Result<()> {
    match (kind, arguments) {
        ("nudge", [url, users]) => actix_web::rt::System::new().block_on(serve_nudge(url, users.parse()?, |_| {})),
        ("single", [url]) => {
            actix_web::rt::System::new().block_on(serve_nudge(url, 1, |config| config.writer.max_batch = 1))
        }
        ("beating", [url]) => actix_web::rt::System::new().block_on(serve_nudge(url, 1, |config| {
            config.websocket.ping_interval_ms = Config::default().websocket.ping_interval_ms;
        })),
        ("group", [url]) => actix_web::rt::System::new().block_on(serve_group(url)),
        ("raw", [users]) => raw_server::serve(users.parse()?),
        _ => bail!("unknown child: {kind} {arguments:?}"),
    }
}

async fn start_nudge(url: &str, adjust: impl FnOnce(&mut Config)) -> anyhow::Result<Server> {
    let mut config = Config {
        listen: "127.0.0.1:0".parse()?,
        database_url: Some(url.to_owned().into()),
        data_dir: std::env::temp_dir().join("nudge-bench"),
        workers: 1,
        ..Config::default()
    };
    // Spans cost something even where no line is written.
    telemetry::init_logs();
    // No heartbeat while it is measured: the clients do not answer it.
    config.websocket.ping_interval_ms = 3_600_000;
    adjust(&mut config);
    Server::start(config, Seams::default()).await
}

async fn serve_nudge(url: &str, users: i64, adjust: impl FnOnce(&mut Config)) -> anyhow::Result<()> {
    let server = start_nudge(url, adjust).await?;
    let registry = server.state().registry.clone();
    let receivers: Arc<[UserId]> = (1..=users).map(UserId).collect();
    announce(server.address())?;
    let mut number = 0;
    let published = tokio::task::spawn_blocking(move || {
        for_every_byte(|| {
            number += 1;
            let notification = Notification { receivers: receivers.clone(), frame: frame(number)? };
            Ok(registry.notify(vec![notification])?)
        })
    });
    published.await?
}

async fn serve_group(url: &str) -> anyhow::Result<()> {
    let server = start_nudge(url, |_| {}).await?;
    let writer = server.state().writer.clone();
    announce(server.address())?;
    let runtime = tokio::runtime::Handle::current();
    let published = tokio::task::spawn_blocking(move || {
        for_every_byte(|| {
            runtime.block_on(writer.send_group(group_draft()?))?;
            Ok(())
        })
    });
    published.await?
}

fn group_draft() -> anyhow::Result<GroupDraft> {
    let (group, number) = (GroupId(1), ContentType::Text.number());
    let content = parse_content(ContentType::Text, CONTENT)?;
    Ok(GroupDraft {
        sender: UserId(1),
        group,
        client_message_id: format!("{:032x}", rand::random::<u128>()),
        content_type: number,
        content_hash: content_hash(group.0, number, &content),
        content,
        at_user_ids: None,
        receipt: None,
    })
}

pub fn announce(address: SocketAddr) -> anyhow::Result<()> {
    println!("{address}");
    Ok(std::io::stdout().flush()?)
}

/// Calls `publish` for every byte of standard input.
pub fn for_every_byte(mut publish: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut bytes = [0; 64];
    let mut input = std::io::stdin().lock();
    loop {
        let count = input.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        for _ in 0..count {
            publish()?;
        }
    }
}

/// What every server pushes: a private message as the product would.
pub fn frame(id: i64) -> anyhow::Result<Frame> {
    let message = PrivateMessage {
        id: MessageId(id),
        client_message_id: "0123456789abcdef0123456789abcdef".into(),
        sender_id: UserId(1),
        receiver_id: UserId(2),
        content_type: ContentType::Text.number(),
        content: CONTENT.into(),
        status: 0,
        receipt_status: 1,
        send_time: 1_800_000_000_000,
    };
    let class = FrameClass::Stored { stream: Stream::Private, id };
    let body = PrivateMessageBody::from(message);
    Ok(Frame::im_notification(class, ConversationType::Private, ContentType::Text.number(), &body)?)
}
