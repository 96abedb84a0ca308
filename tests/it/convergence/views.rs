//! What each user must see of the model: rows, receipts, unread counts, lists, in the shape of the server's answers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::model::{Message, Model, NORMAL, RECALL, TEXT};

impl Message {
    /// As a device stores it: without what is asked for anew when it is shown.
    pub fn stored_form(&self) -> Value {
        let mut row = json!({
            "id": self.id, "clientMessageId": self.client_id, "senderId": self.sender, "type": self.kind,
            "content": if self.recalled { json!({}) } else { self.content.clone() },
            "status": if self.recalled { 2 } else { 0 }, "sendTime": self.send_time,
        });
        row[if self.is_group { "groupId" } else { "receiverId" }] = json!(self.target);
        row
    }
}

/// An answer's row with its texts of JSON parsed.
pub fn parsed(row: &Value) -> Value {
    let mut row = row.clone();
    row["content"] = serde_json::from_str(row["content"].as_str().unwrap_or("null")).unwrap();
    for holder in ["quote", "message"] {
        if let Some(inner) = row["content"].get_mut(holder) {
            *inner = parsed(inner);
        }
    }
    row
}

/// [`parsed`], in the form that a device stores.
pub fn stored(row: &Value) -> Value {
    let mut row = parsed(row);
    for field in ["receiptStatus", "readCount", "atUserIds", "receiverUserIds"] {
        row.as_object_mut().unwrap().remove(field);
    }
    row
}

impl Model {
    /// A row as the viewer pulls it.
    pub fn pulled(&self, message: &Message, viewer: i64) -> Value {
        let mut row = message.stored_form();
        if !message.is_group {
            let position = self.position((message.target, 1, message.sender));
            let status = i64::from(message.asks_receipt) + i64::from(message.asks_receipt && position >= message.id);
            row["receiptStatus"] = json!(status);
            return row;
        }
        row["atUserIds"] = Value::Null;
        row["receiverUserIds"] = Value::Null;
        row["readCount"] = Value::Null;
        row["receiptStatus"] = json!(0);
        if message.asks_receipt {
            let receivers = self.receivers(message);
            let readers = self.readers(message);
            let done = !receivers.is_empty() && receivers == readers;
            row["receiptStatus"] = json!(if done { 2 } else { 1 });
            if message.sender == viewer {
                row["readCount"] = json!(readers.len());
            }
        }
        row
    }

    fn position(&self, key: (i64, i64, i64)) -> i64 {
        self.positions.get(&key).copied().unwrap_or(0)
    }

    /// Who has a receipt to give: those who see the message and are still members.
    fn receivers(&self, message: &Message) -> BTreeSet<i64> {
        let present = self.groups[&message.target].active();
        message.audience.iter().copied().filter(|user| present.contains(user) && *user != message.sender).collect()
    }

    pub fn readers(&self, message: &Message) -> BTreeSet<i64> {
        let mut receivers = self.receivers(message);
        receivers.retain(|user| self.position((*user, 2, message.target)) >= message.id);
        receivers
    }

    /// Every row that the user may pull, ascending.
    pub fn visible(&self, user: i64, is_group: bool) -> impl DoubleEndedIterator<Item = &Message> {
        let rows = if is_group { &self.group_messages } else { &self.private };
        rows.values().filter(move |message| message.audience.contains(&user))
    }

    /// A conversation's history, newest first.
    pub fn history(&self, user: i64, is_group: bool, target: i64) -> Vec<Value> {
        let pair = BTreeSet::from([user, target]);
        let is_here = |message: &&Message| match is_group {
            true => message.target == target,
            false => message.audience == pair,
        };
        let show = |message: &Message| {
            let mut row = self.pulled(message, user);
            if message.recalled {
                row["type"] = json!(RECALL);
            }
            row
        };
        let rows = self.visible(user, is_group).rev().filter(is_here);
        rows.filter(|message| message.kind != RECALL).map(show).collect()
    }

    /// Unread messages by conversation type and target; the total leaves out silenced groups.
    pub fn unread(&self, user: i64) -> (i64, BTreeMap<(i64, i64), i64>) {
        let mut counts: BTreeMap<(i64, i64), i64> = BTreeMap::new();
        let rows = self.visible(user, false).chain(self.visible(user, true));
        for message in rows.filter(|row| row.sender != user && row.kind == TEXT && !row.recalled) {
            let conversation = if message.is_group { (2, message.target) } else { (1, message.sender) };
            if message.id > self.position((user, conversation.0, conversation.1)) {
                *counts.entry(conversation).or_default() += 1;
            }
        }
        let is_silent = |(kind, target): &(i64, i64)| *kind == 2 && self.groups[target].members[&user].silent;
        let total = counts.iter().filter(|(key, _)| !is_silent(key)).map(|(_, count)| count).sum();
        (total, counts)
    }

    /// Friend rows by friend.
    pub fn friends_of(&self, user: i64) -> BTreeMap<i64, Value> {
        let show = |friend: &super::model::Friend| json!([i64::from(!friend.active), friend.blocked]);
        let rows = self.friends.iter().filter(|((owner, _), _)| *owner == user);
        rows.map(|((_, friend), row)| (*friend, show(row))).collect()
    }

    /// Friend requests by applicant and receiver.
    pub fn friend_requests_of(&self, user: i64) -> BTreeMap<(i64, i64), Value> {
        let rows = self.friend_requests.iter().filter(|((from, to), _)| *from == user || *to == user);
        rows.map(|(pair, request)| (*pair, json!([request.result, request.text]))).collect()
    }

    /// Waiting requests of the groups that the user manages.
    pub fn waiting_for(&self, user: i64) -> BTreeMap<(i64, i64), Value> {
        let manages = |group: i64| self.groups[&group].member(user).is_ok_and(|member| member.role != NORMAL);
        let rows = self.join_requests.iter().filter(|((group, _), row)| row.result == 0 && manages(*group));
        rows.map(|(key, row)| (*key, json!([row.text, row.inviter, row.source]))).collect()
    }

    /// Read positions by conversation type and target.
    pub fn positions_of(&self, user: i64) -> BTreeMap<(i64, i64), i64> {
        let rows = self.positions.iter().filter(|((reader, _, _), _)| *reader == user);
        rows.map(|((_, kind, target), id)| ((*kind, *target), *id)).collect()
    }

    /// The groups that the user is or was in.
    pub fn groups_of(&self, user: i64) -> BTreeMap<i64, Value> {
        let show = |group: &super::model::Group| {
            let member = &group.members[&user];
            let pin = |id: &i64| {
                let row = &self.group_messages[id].stored_form();
                json!([id, row["status"], row["content"]])
            };
            let pins: Vec<Value> = group.pins.iter().filter(|_| member.active).map(pin).collect();
            json!({
                "name": group.name, "ownerUserId": group.owner, "mutedAll": group.muted, "joinApproval": group.approval,
                "banned": group.banned,
                "status": i64::from(group.dissolved), "joinStatus": i64::from(!member.active), "silent": member.silent,
                "pins": pins,
            })
        };
        let rows = self.groups.iter().filter(|(_, group)| group.members.contains_key(&user));
        rows.map(|(id, group)| (*id, show(group))).collect()
    }

    /// The members of a group, former ones too: status, role, end of the mute.
    pub fn members_of(&self, group: i64) -> BTreeMap<i64, Value> {
        let rows = self.groups[&group].members.iter();
        rows.map(|(user, row)| (*user, json!([i64::from(!row.active), row.role, row.mute_end]))).collect()
    }
}

/// The same of the server's answers: rows by what names them, with what the model knows.
pub mod of_answers {
    use super::*;

    fn number(row: &Value, key: &str) -> i64 {
        row[key].as_i64().unwrap_or_else(|| panic!("no {key} in {row}"))
    }

    pub fn friends<'a>(rows: impl IntoIterator<Item = &'a Value>) -> BTreeMap<i64, Value> {
        let show = |row: &Value| (number(row, "friendUserId"), json!([row["status"], row["blocked"]]));
        rows.into_iter().map(show).collect()
    }

    pub fn friend_requests<'a>(rows: impl IntoIterator<Item = &'a Value>) -> BTreeMap<(i64, i64), Value> {
        let key = |row: &Value| (number(row, "fromUserId"), number(row, "toUserId"));
        rows.into_iter().map(|row| (key(row), json!([row["handleResult"], row["applyContent"]]))).collect()
    }

    pub fn waiting<'a>(rows: impl IntoIterator<Item = &'a Value>) -> BTreeMap<(i64, i64), Value> {
        let key = |row: &Value| (number(row, "groupId"), number(row, "userId"));
        let show = |row: &Value| (key(row), json!([row["applyContent"], row["inviterUserId"], row["addSource"]]));
        rows.into_iter().filter(|row| row["handleResult"] == 0).map(show).collect()
    }

    pub fn positions<'a>(rows: impl IntoIterator<Item = &'a Value>) -> BTreeMap<(i64, i64), i64> {
        let key = |row: &Value| (number(row, "conversationType"), number(row, "targetId"));
        rows.into_iter().map(|row| (key(row), number(row, "messageId"))).collect()
    }

    pub fn groups<'a>(rows: impl IntoIterator<Item = &'a Value>) -> BTreeMap<i64, Value> {
        let show = |row: &Value| {
            let pins = row["pinnedMessages"].as_array().cloned().unwrap_or_default();
            let pin = |row: &Value| json!([row["id"], row["status"], parsed(row)["content"]]);
            let mut shown = json!({"pins": pins.iter().map(pin).collect::<Vec<_>>()});
            for key in ["name", "ownerUserId", "mutedAll", "joinApproval", "banned", "status", "joinStatus", "silent"] {
                shown[key] = row[key].clone();
            }
            (number(row, "id"), shown)
        };
        rows.into_iter().map(show).collect()
    }

    pub fn members<'a>(rows: impl IntoIterator<Item = &'a Value>) -> BTreeMap<i64, Value> {
        let show = |row: &Value| (number(row, "userId"), json!([row["status"], row["role"], row["muteEndTime"]]));
        rows.into_iter().map(show).collect()
    }

    pub fn unread(answer: &Value) -> (i64, BTreeMap<(i64, i64), i64>) {
        let key = |row: &Value| (number(row, "conversationType"), number(row, "targetId"));
        let counts = answer["conversations"].as_array().unwrap().iter();
        (number(answer, "total"), counts.map(|row| (key(row), number(row, "count"))).collect())
    }
}
