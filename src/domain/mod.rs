//! Rules without I/O: what a value is and what may happen. Nothing here knows a database, an actor or a socket.

pub mod content;
pub mod conversation;
pub mod device_position;
pub mod friendship;
pub mod group;
pub mod group_message;
pub mod ids;
pub mod message;
pub mod pinyin;
pub mod private_message;
pub mod refusal;
