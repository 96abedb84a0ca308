//! A device that pulls as the contract says: page by page, each after the last row of the page before.

use std::collections::BTreeMap;

use serde_json::Value;

use super::app::{Person, id_of};

/// Pulls private messages.
pub struct MessageCursor {
    person: Person,
    size: usize,
    min_id: i64,
    /// Everything that was pulled, in the order of arrival.
    pub rows: Vec<Value>,
}

impl MessageCursor {
    pub fn new(person: &Person, size: usize) -> MessageCursor {
        MessageCursor { person: person.clone(), size, min_id: 0, rows: Vec::new() }
    }

    /// The next page; its number of rows.
    pub async fn page(&mut self) -> usize {
        let path = format!("/im/message/private/pull?minId={}&size={}", self.min_id, self.size);
        let page = self.person.get(&path).await;
        let page = page.as_array().unwrap();
        assert!(page.len() <= self.size, "{} rows in a page of {}", page.len(), self.size);
        for row in page {
            assert!(id_of(row) > self.min_id, "{row} after {}", self.min_id);
            self.min_id = id_of(row);
        }
        self.rows.extend(page.iter().cloned());
        page.len()
    }

    /// All pages until the empty one.
    pub async fn finish(&mut self) {
        while self.page().await > 0 {}
    }
}

/// Pulls read positions.
pub struct PositionCursor {
    person: Person,
    limit: usize,
    cursor: Option<(i64, i64)>,
    /// The newest version of every row: peer, message and stamp by row id.
    pub rows: BTreeMap<i64, (i64, i64, i64)>,
    /// Versions pulled, each counted.
    pub count: usize,
}

impl PositionCursor {
    pub fn new(person: &Person, limit: usize) -> PositionCursor {
        PositionCursor { person: person.clone(), limit, cursor: None, rows: BTreeMap::new(), count: 0 }
    }

    /// The next page; its number of rows.
    pub async fn page(&mut self) -> usize {
        let cursor = self.cursor.map_or(String::new(), |(time, id)| format!("&lastUpdateTime={time}&lastId={id}"));
        let page = self.person.get(&format!("/im/conversation-read/pull?limit={}{cursor}", self.limit)).await;
        let page = page.as_array().unwrap();
        assert!(page.len() <= self.limit, "{} rows in a page of {}", page.len(), self.limit);
        for row in page {
            let number = |key: &str| row[key].as_i64().unwrap();
            let position = (number("updateTime"), number("id"));
            assert!(Some(position) > self.cursor, "{row} after {:?}", self.cursor);
            self.cursor = Some(position);
            self.rows.insert(number("id"), (number("targetId"), number("messageId"), number("updateTime")));
        }
        self.count += page.len();
        page.len()
    }

    /// All pages until the empty one.
    pub async fn finish(&mut self) {
        while self.page().await > 0 {}
    }
}
