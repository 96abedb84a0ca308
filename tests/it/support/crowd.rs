//! Very many people at once: accounts by the server API, friendships straight into the table.

use serde_json::json;

use super::app::{Person, TestApp, random_id, server_api};
use super::second_connection::SecondConnection;

/// People of one call.
const CHUNK: usize = 100;

impl TestApp {
    /// New people, signed in.
    pub async fn crowd(&self, count: usize) -> Vec<Person> {
        let name = random_id();
        let ids: Vec<String> = (0..count).map(|index| format!("{name}-{index}")).collect();
        let mut people = Vec::with_capacity(count);
        for ids in ids.chunks(CHUNK) {
            let users: Vec<_> = ids.iter().map(|id| json!({"externalId": id, "nickname": "one of many"})).collect();
            server_api(&self.http, &self.base, "/users", json!({"users": users})).await;
            people.extend(Person::sign_in_all(&self.http, &self.base, ids).await);
        }
        people
    }

    /// New people whom `owner` knows as friends; they need not know the owner.
    pub async fn crowd_of_friends(&self, owner: &Person, count: usize) -> Vec<Person> {
        let crowd = self.crowd(count).await;
        let rows: Vec<String> = crowd
            .iter()
            .map(|friend| format!("({}, {}, FALSE, '', FALSE, FALSE, 0, 1, 1)", owner.id, friend.id))
            .collect();
        let columns =
            "user_id, friend_user_id, silent, display_name, pinned, blocked, status, create_time, update_time";
        let mut table = SecondConnection::open(&self.database.url).await;
        table.execute(&format!("INSERT INTO im_friend ({columns}) VALUES {}", rows.join(","))).await;
        crowd
    }
}
