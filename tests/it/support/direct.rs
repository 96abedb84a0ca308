//! The database without the server: the server's own statements on connections of the test, with pauses and rollbacks
//! where a test wants them.

use std::time::Duration;

use nudge::clock::Clock;
use nudge::config::Config;
use nudge::db::Db;
use nudge::db::connect::{Role, Source};
use nudge::db::conversation_reads::{self, Advance};
use nudge::db::group_messages::{self, GroupMessageRow};
use nudge::db::private_messages::{self, PrivateMessageRow};
use nudge::db::sequence::{self, Counter, CounterValue};
use nudge::domain::content::{ContentType, content_hash, parse_content};
use nudge::domain::ids::{GroupId, MessageId, UserId};
use nudge::protocol::frame::Notification;
use nudge::service::conversation_reads::{Conversation, ReadReport};
use nudge::service::group_messages::GroupDraft;
use nudge::service::member_cache::MemberCache;
use nudge::service::private_messages::PrivateDraft;
use nudge::service::run::{self, RunCommand};
use nudge::service::{Locks, Tx};
use rand::Rng;
use serde_json::json;
use tokio::task::JoinHandle;

use super::app::random_id;

const TEXT: ContentType = ContentType::Text;
/// Rows of one insert.
const CHUNK: usize = 1_000;

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Commit,
    RollBack,
}

/// A second writer, beside the server's.
pub struct DirectWriter {
    db: Db,
    config: Config,
    members: MemberCache,
}

impl DirectWriter {
    pub async fn connect(url: &str) -> DirectWriter {
        DirectWriter {
            db: connect(url, Role::Writer).await,
            config: Config::default(),
            members: MemberCache::default(),
        }
    }

    /// Runs commands in one transaction, by the statements of the server. `meanwhile` happens when all is written and
    /// nothing is committed. The commands are all of one kind.
    pub async fn run(&mut self, commands: &[RunCommand], meanwhile: impl Future<Output = ()>, end: End) {
        self.db.begin().await.unwrap();
        let mut tx = Tx::new(&mut self.db, Clock::system().now(), &self.config, &mut self.members);
        // As the server's writer: sends lock after their checks, reports first of all.
        if commands.iter().any(|command| matches!(command, RunCommand::ReportRead(_))) {
            tx.lock(Locks::CLOCK).await.unwrap();
        }
        for answer in run::execute(&mut tx, &commands.iter().collect::<Vec<_>>()).await.unwrap() {
            answer.unwrap();
        }
        // Its row need not exist: nobody asks for the number of the batch.
        tx.finish("writer:test", 1).await.unwrap();
        meanwhile.await;
        match end {
            End::Commit => self.db.commit().await.unwrap(),
            End::RollBack => self.db.rollback().await.unwrap(),
        }
    }

    /// Sends to a group in a transaction of its own; what the server would push.
    pub async fn send_group(&mut self, draft: GroupDraft) -> Vec<Notification> {
        self.db.begin().await.unwrap();
        let mut tx = Tx::new(&mut self.db, Clock::system().now(), &self.config, &mut self.members);
        tx.lock(Locks::GROUP).await.unwrap();
        for answer in run::execute(&mut tx, &[&RunCommand::SendGroup(draft)]).await.unwrap() {
            answer.unwrap();
        }
        let outbox = tx.finish("writer:test", 1).await.unwrap();
        self.db.commit().await.unwrap();
        outbox.notifications
    }

    /// Stores messages of (sender, receiver) without asking whether they may; their ids.
    pub async fn store_messages(&mut self, pairs: &[(i64, i64)]) -> Vec<i64> {
        let mut ids = Vec::new();
        for pairs in pairs.chunks(CHUNK) {
            self.db.begin().await.unwrap();
            let mut tx = Tx::new(&mut self.db, Clock::system().now(), &self.config, &mut self.members);
            tx.lock(Locks::PRIVATE).await.unwrap();
            let range = tx.take_ids(Counter::Private, pairs.len()).unwrap();
            let numbered = (range.first.0..).zip(pairs);
            let rows: Vec<_> = numbered.map(|(id, pair)| message_row(id, *pair, range.send_time)).collect();
            private_messages::insert_all_if_new(tx.db, &rows).await.unwrap();
            tx.finish("writer:test", 1).await.unwrap();
            self.db.commit().await.unwrap();
            ids.extend(rows.iter().map(|row| row.id.0));
        }
        ids
    }

    /// Stores one message under an id and a time of the test's choice, and moves the counter there.
    pub async fn store_at(&mut self, id: i64, pair: (i64, i64), send_time: i64) {
        let row = message_row(id, pair, send_time);
        private_messages::insert_all_if_new(&mut self.db, &[row]).await.unwrap();
        self.set_counter(Counter::Private, id).await;
    }

    /// Stores texts under ids of the test's choice: id, group, and to whom alone it is directed.
    pub async fn store_group_messages(&mut self, sender: i64, messages: &[(i64, i64, Option<i64>)]) {
        let now = Clock::system().now();
        for messages in messages.chunks(CHUNK) {
            let rows: Vec<_> = messages.iter().map(|message| group_row(sender, *message, now)).collect();
            let count = group_messages::insert_all_if_new(&mut self.db, &rows).await.unwrap();
            assert_eq!(count, rows.len());
        }
    }

    /// Stores a message in a group without asking whether its sender may; its id.
    pub async fn store_group_message(&mut self, group: i64, sender: i64, text: &str) -> i64 {
        self.db.begin().await.unwrap();
        let mut tx = Tx::new(&mut self.db, Clock::system().now(), &self.config, &mut self.members);
        tx.lock(Locks::GROUP).await.unwrap();
        let range = tx.take_ids(Counter::Group, 1).unwrap();
        let row = GroupMessageRow {
            id: range.first,
            client_message_id: random_id(),
            sender_id: UserId(sender),
            group_id: GroupId(group),
            type_: TEXT as i32,
            content: json!({"content": text}).to_string(),
            content_hash: vec![0; 16],
            status: 0,
            receipt_status: 1,
            send_time: range.send_time,
            at_user_ids: None,
            receiver_user_ids: None,
        };
        group_messages::insert_all_if_new(tx.db, &[row]).await.unwrap();
        tx.finish("writer:test", 1).await.unwrap();
        self.db.commit().await.unwrap();
        range.first.0
    }

    /// Positions under one stamp, in one transaction.
    pub async fn store_positions(&mut self, advances: &[Advance], stamp: i64) {
        self.db.begin().await.unwrap();
        for advances in advances.chunks(CHUNK) {
            conversation_reads::raise_all(&mut self.db, advances, stamp).await.unwrap();
        }
        self.db.commit().await.unwrap();
    }

    /// What a restored backup or a very long life does to a counter.
    pub async fn set_counter(&mut self, counter: Counter, value: i64) {
        let row = (counter.name().to_owned(), CounterValue { value, time: 0 });
        sequence::store(&mut self.db, &[row]).await.unwrap();
    }
}

pub async fn connect(url: &str, role: Role) -> Db {
    Source::parse(&url.to_owned().into()).unwrap().connect(role).await.unwrap()
}

fn message_row(id: i64, (sender, receiver): (i64, i64), send_time: i64) -> PrivateMessageRow {
    PrivateMessageRow {
        id: MessageId(id),
        client_message_id: random_id(),
        sender_id: UserId(sender),
        receiver_id: UserId(receiver),
        type_: TEXT as i32,
        content: json!({"content": format!("number {id}")}).to_string(),
        content_hash: vec![0; 16],
        status: 0,
        receipt_status: 0,
        send_time,
    }
}

fn group_row(sender: i64, (id, group, directed): (i64, i64, Option<i64>), send_time: i64) -> GroupMessageRow {
    GroupMessageRow {
        id: MessageId(id),
        client_message_id: random_id(),
        sender_id: UserId(sender),
        group_id: GroupId(group),
        type_: TEXT as i32,
        content: json!({"content": format!("number {id}")}).to_string(),
        content_hash: vec![0; 16],
        status: 0,
        receipt_status: 0,
        send_time,
        at_user_ids: None,
        receiver_user_ids: directed.map(|user| user.to_string()),
    }
}

/// A text to a group as the server takes it from a request.
pub fn group_draft(sender: i64, group: i64, text: &str) -> GroupDraft {
    let content = parse_content(TEXT, &json!({"content": text}).to_string()).unwrap();
    GroupDraft {
        sender: UserId(sender),
        group: GroupId(group),
        client_message_id: random_id(),
        content_type: TEXT as i32,
        content_hash: content_hash(group, TEXT as i32, &content),
        content,
        at_user_ids: None,
        receipt: None,
    }
}

/// A text as the server takes it from a request.
pub fn text_draft(sender: i64, receiver: i64, text: &str) -> PrivateDraft {
    let content = parse_content(TEXT, &json!({"content": text}).to_string()).unwrap();
    PrivateDraft {
        sender: UserId(sender),
        receiver: UserId(receiver),
        client_message_id: random_id(),
        content_type: TEXT as i32,
        content_hash: content_hash(receiver, TEXT as i32, &content),
        content,
        receipt: None,
    }
}

pub fn read_report(reader: i64, peer: i64, message: i64) -> RunCommand {
    RunCommand::ReportRead(ReadReport {
        reader: UserId(reader),
        conversation: Conversation::With(UserId(peer)),
        message: MessageId(message),
    })
}

/// Runs work on a thread of its own: SQLite waits for another writer by blocking its thread.
pub fn on_own_thread<T, F>(work: impl FnOnce() -> F + Send + 'static) -> JoinHandle<T>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    tokio::task::spawn_blocking(move || {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work())
    })
}

/// The seed of a random test: `TEST_SEED`, or a new one. The output of a test that fails shows it.
pub fn seed() -> u64 {
    let seed = match std::env::var("TEST_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => rand::rng().random(),
    };
    eprintln!("TEST_SEED={seed}");
    seed
}

/// Whether the long forms of tests are asked for.
pub fn is_long() -> bool {
    std::env::var_os("TEST_LONG").is_some()
}

/// A random time up to `milliseconds`.
pub fn random_pause(rng: &mut impl Rng, milliseconds: u64) -> Duration {
    Duration::from_micros(rng.random_range(0..=milliseconds * 1_000))
}
