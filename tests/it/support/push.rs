//! A text frame taken apart.

use serde_json::Value;

/// A notification as a client sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Push {
    pub conversation_type: i64,
    pub content_type: i64,
    pub payload: Value,
}

pub fn parse_push(text: &str) -> Push {
    let frame: Value = serde_json::from_str(text).unwrap();
    assert_eq!(frame["type"], "im-notification", "{frame}");
    let envelope: Value = serde_json::from_str(frame["content"].as_str().unwrap()).unwrap();
    Push {
        conversation_type: envelope["conversationType"].as_i64().unwrap(),
        content_type: envelope["contentType"].as_i64().unwrap(),
        payload: envelope["payload"].clone(),
    }
}
