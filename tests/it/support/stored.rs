//! What is stored, read from the tables themselves, beside the server.

use std::collections::{BTreeMap, BTreeSet};

use diesel::dsl::max;
use diesel::{BoolExpressionMethods, ExpressionMethods, QueryDsl};
use nudge::db::connect::Role;
use nudge::db::group_messages::GroupMessageRow;
use nudge::db::private_messages::PrivateMessageRow;
use nudge::db::schema::{
    im_conversation_read, im_friend, im_friend_request, im_group_message, im_group_request, im_private_message,
};
use nudge::db::{Columns, Db, RunQueryDsl};
use nudge::domain::ids::MessageId;
use serde_json::Value;

use super::direct::connect;

/// The tables as they are.
pub struct Tables(Db);

/// A message as it is stored.
#[derive(Clone, Debug)]
pub struct StoredMessage {
    pub id: i64,
    pub client_message_id: String,
    pub sender: i64,
    /// The receiver, or the group.
    pub target: i64,
    pub kind: i64,
    pub content: String,
    pub status: i64,
    pub asks_receipt: bool,
    pub send_time: i64,
}

/// A table whose rows are found by a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    PrivateMessage,
    Friend,
    FriendRequest,
    ConversationRead,
}

impl Tables {
    pub async fn open(url: &str) -> Tables {
        Tables(connect(url, Role::Reader).await)
    }

    /// Every private message, ascending.
    pub async fn message_ids(&mut self) -> Vec<i64> {
        use im_private_message::{id, table};
        table.select(id).order(id.asc()).load(&mut self.0).await.unwrap()
    }

    /// Every group message, ascending.
    pub async fn group_message_ids(&mut self) -> Vec<i64> {
        use im_group_message::{id, table};
        table.select(id).order(id.asc()).load(&mut self.0).await.unwrap()
    }

    /// The private messages that somebody sent or received, ascending.
    pub async fn message_ids_of(&mut self, user: i64) -> Vec<i64> {
        use im_private_message::{id, receiver_id, sender_id, table};
        let is_party = sender_id.eq(user).or(receiver_id.eq(user));
        table.filter(is_party).select(id).order(id.asc()).load(&mut self.0).await.unwrap()
    }

    /// Somebody's read positions: row, peer, message and stamp, in the order of a cursor.
    pub async fn positions_of(&mut self, user: i64) -> Vec<(i64, i64, i64, i64)> {
        use im_conversation_read::{id, message_id, table, target_id, update_time, user_id};
        let rows = table.filter(user_id.eq(user)).order((update_time.asc(), id.asc()));
        rows.select((id, target_id, message_id, update_time)).load(&mut self.0).await.unwrap()
    }

    /// The newest ids of private and group messages; 0 where there are none.
    pub async fn newest_messages(&mut self) -> [i64; 2] {
        let private: Option<MessageId> =
            im_private_message::table.select(max(im_private_message::id)).first(&mut self.0).await.unwrap();
        let group: Option<MessageId> =
            im_group_message::table.select(max(im_group_message::id)).first(&mut self.0).await.unwrap();
        [private, group].map(|id| id.map_or(0, |id| id.0))
    }

    /// The private messages above an id, ascending.
    pub async fn private_messages_after(&mut self, after: i64) -> Vec<StoredMessage> {
        use im_private_message::{id, table};
        let rows = table.filter(id.gt(MessageId(after))).order(id.asc()).select(PrivateMessageRow::columns());
        let rows: Vec<PrivateMessageRow> = rows.load(&mut self.0).await.unwrap();
        let show = |row: PrivateMessageRow| StoredMessage {
            id: row.id.0,
            client_message_id: row.client_message_id,
            sender: row.sender_id.0,
            target: row.receiver_id.0,
            kind: row.type_.into(),
            content: row.content,
            status: row.status.into(),
            asks_receipt: row.receipt_status != 0,
            send_time: row.send_time,
        };
        rows.into_iter().map(show).collect()
    }

    /// The group messages above an id, ascending. None is directed.
    pub async fn group_messages_after(&mut self, after: i64) -> Vec<StoredMessage> {
        use im_group_message::{id, table};
        let rows = table.filter(id.gt(MessageId(after))).order(id.asc()).select(GroupMessageRow::columns());
        let rows: Vec<GroupMessageRow> = rows.load(&mut self.0).await.unwrap();
        let show = |row: GroupMessageRow| {
            assert_eq!(row.receiver_user_ids, None, "a directed message");
            StoredMessage {
                id: row.id.0,
                client_message_id: row.client_message_id,
                sender: row.sender_id.0,
                target: row.group_id.0,
                kind: row.type_.into(),
                content: row.content,
                status: row.status.into(),
                asks_receipt: row.receipt_status != 0,
                send_time: row.send_time,
            }
        };
        rows.into_iter().map(show).collect()
    }

    /// Every friend request: applicant, receiver and id, in the order of their changes.
    pub async fn friend_requests(&mut self) -> Vec<(i64, i64, i64)> {
        use im_friend_request::{from_user_id, id, table, to_user_id, update_time};
        let rows = table.select((from_user_id, to_user_id, id)).order((update_time.asc(), id.asc()));
        rows.load(&mut self.0).await.unwrap()
    }

    /// Every request to join a group: group, user and id, in the order of their changes.
    pub async fn join_requests(&mut self) -> Vec<(i64, i64, i64)> {
        use im_group_request::{group_id, id, table, update_time, user_id};
        let rows = table.select((group_id, user_id, id)).order((update_time.asc(), id.asc()));
        rows.load(&mut self.0).await.unwrap()
    }

    /// Every row of a table with what a cursor orders it by, seen at one moment.
    pub async fn versions(&mut self, table: Table) -> Vec<(i64, i64)> {
        let db = &mut self.0;
        let rows = match table {
            Table::PrivateMessage => {
                im_private_message::table.select((im_private_message::id, im_private_message::id)).load(db).await
            }
            Table::Friend => im_friend::table.select((im_friend::id, im_friend::update_time)).load(db).await,
            Table::FriendRequest => {
                im_friend_request::table.select((im_friend_request::id, im_friend_request::update_time)).load(db).await
            }
            Table::ConversationRead => {
                let columns = (im_conversation_read::id, im_conversation_read::update_time);
                im_conversation_read::table.select(columns).load(db).await
            }
        };
        rows.unwrap()
    }
}

/// Who may see each group message: the members of that moment, by the events before it. Whoever goes sees the event
/// that says so, and whoever comes the one that says that.
pub fn audiences(rows: &[StoredMessage]) -> BTreeMap<i64, BTreeSet<i64>> {
    let mut members: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    let mut audiences = BTreeMap::new();
    for row in rows {
        let content: Value = serde_json::from_str(&row.content).unwrap();
        let named = content["memberUserIds"].as_array().into_iter().flatten().filter_map(Value::as_i64);
        let present = members.entry(row.target).or_default();
        match row.kind {
            1501 | 1509 => present.extend(named.clone()),
            1510 => present.extend(content["entrantUserId"].as_i64()),
            _ => {}
        }
        audiences.insert(row.id, present.clone());
        match row.kind {
            1504 => present.retain(|user| *user != row.sender),
            1508 => named.for_each(|left| present.retain(|user| *user != left)),
            1511 => present.clear(),
            _ => {}
        }
    }
    audiences
}
