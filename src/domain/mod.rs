//! Rules without I/O: what a value is and what may happen. Nothing here knows a database, an actor or a socket.

pub mod calendar;
pub mod content;
pub mod conversation;
pub mod device_position;
pub mod file_path;
pub mod friendship;
pub mod group;
pub mod group_message;
pub mod ids;
pub mod message;
pub mod page;
pub mod permission;
pub mod pinyin;
pub mod private_message;
pub mod refusal;
pub mod words;
