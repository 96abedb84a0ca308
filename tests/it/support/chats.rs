//! What members of groups do: write, pull, read, recall, and change who is in.

use serde_json::{Value, json};

use super::app::{Person, TestApp, befriend, data, id_of, random_id};

/// Content types that group tests name.
pub const TEXT: i64 = 101;
pub const GROUP_CREATE: i64 = 1501;
pub const RECALL: i64 = 2101;
pub const RECEIPT: i64 = 2200;
pub const READ: i64 = 2201;

/// A message body for the group.
pub fn group_text(group: i64, client_message_id: &str, text: &str) -> Value {
    let content = json!({"content": text}).to_string();
    json!({"clientMessageId": client_message_id, "groupId": group, "type": TEXT, "content": content})
}

impl TestApp {
    /// People of these names, of whom the first is everybody's friend and the owner of a group of them all; its id.
    pub async fn group<const N: usize>(&self, names: [&str; N]) -> ([Person; N], i64) {
        let mut people = Vec::new();
        for name in names {
            people.push(self.user(name).await);
        }
        for friend in &people[1..] {
            befriend(&people[0], friend).await;
        }
        let group = people[0].create_group(&people[1..].iter().collect::<Vec<_>>()).await;
        (people.try_into().unwrap_or_else(|_| unreachable!()), group)
    }
}

impl Person {
    /// Makes a group with friends; its id.
    pub async fn create_group(&self, friends: &[&Person]) -> i64 {
        let ids: Vec<i64> = friends.iter().map(|friend| friend.id).collect();
        id_of(&self.post("/im/group/create", json!({"name": "a group", "memberUserIds": ids})).await)
    }

    /// Sends a body to a group; the whole answer.
    pub async fn try_say(&self, body: Value) -> Value {
        self.call("POST", "/im/message/group/send", Some(body)).await
    }

    /// Sends a text; the stored row.
    pub async fn say(&self, group: i64, text: &str) -> Value {
        data(self.try_say(group_text(group, &random_id(), text)).await)
    }

    /// Sends a text that asks for a receipt; its id.
    pub async fn ask_receipt(&self, group: i64, text: &str) -> i64 {
        let mut body = group_text(group, &random_id(), text);
        body["receipt"] = json!(true);
        id_of(&data(self.try_say(body).await))
    }

    /// One page of a group pull.
    pub async fn pull_page(&self, min_id: i64, size: usize) -> Vec<Value> {
        let page = self.get(&format!("/im/message/group/pull?minId={min_id}&size={size}")).await;
        page.as_array().unwrap().clone()
    }

    /// Everything that a pull of groups gives from the beginning, page by page.
    pub async fn pull_groups(&self, size: usize) -> Vec<Value> {
        let mut rows: Vec<Value> = Vec::new();
        loop {
            let page = self.pull_page(rows.last().map_or(0, id_of), size).await;
            rows.extend(page.iter().cloned());
            if page.len() < size {
                return rows;
            }
        }
    }

    /// The history of a group, newest first, page by page until one that is not full.
    pub async fn history(&self, group: i64, limit: usize) -> Vec<Value> {
        let mut rows: Vec<Value> = Vec::new();
        loop {
            let before = rows.last().map_or(String::new(), |last| format!("&maxId={}", id_of(last)));
            let page = self.get(&format!("/im/message/group/list?groupId={group}&limit={limit}{before}")).await;
            let page = page.as_array().unwrap();
            rows.extend(page.iter().cloned());
            if page.len() < limit {
                return rows;
            }
        }
    }

    pub async fn read_group(&self, group: i64, message: i64) {
        self.put(&read_path(group, message)).await;
    }

    pub async fn readers_of(&self, group: i64, message: i64) -> Vec<i64> {
        let path = format!("/im/message/group/get-read-user-ids?groupId={group}&messageId={message}");
        serde_json::from_value(self.get(&path).await).unwrap()
    }

    /// Recalls a message of a group; the whole answer.
    pub async fn try_recall(&self, message: i64) -> Value {
        self.call("DELETE", &format!("/im/message/group/recall?id={message}"), None).await
    }

    pub async fn invite(&self, group: i64, who: &Person) {
        self.post("/im/group/invite", json!({"groupId": group, "memberUserIds": [who.id]})).await;
    }

    pub async fn kick(&self, group: i64, who: &Person) {
        let body = json!({"groupId": group, "memberUserIds": [who.id]});
        data(self.call("DELETE", "/im/group/kicking", Some(body)).await);
    }

    pub async fn quit(&self, group: i64) {
        self.delete(&format!("/im/group/quit?groupId={group}")).await;
    }

    pub async fn dissolve(&self, group: i64) {
        self.delete(&format!("/im/group/dissolve?id={group}")).await;
    }

    /// A PUT with a body, which must succeed.
    pub async fn change(&self, path: &str, body: Value) {
        data(self.call("PUT", path, Some(body)).await);
    }

    pub async fn mute_all(&self, group: i64, muted: bool) {
        self.change("/im/group/mute-all", json!({"id": group, "mutedAll": muted})).await;
    }

    /// Mutes a member for an hour.
    pub async fn mute(&self, group: i64, who: &Person) {
        let body = json!({"id": group, "userId": who.id, "mutedSeconds": 3_600});
        self.change("/im/group/mute-member", body).await;
    }

    pub async fn make_admin(&self, group: i64, who: &Person) {
        self.change("/im/group/add-admin", json!({"id": group, "userIds": [who.id]})).await;
    }
}

/// The call that reports reading.
pub fn read_path(group: i64, message: i64) -> String {
    format!("/im/message/group/read?groupId={group}&messageId={message}")
}
