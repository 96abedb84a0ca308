//! The product's verbs: functions over a [`Tx`] (writes) or a `Db` (reads). A service never sees an actor or a
//! socket: whatever must be told to devices goes into the transaction's outbox, and leaves after the commit (I1).

pub mod accounts;
pub mod conversation_reads;
pub mod device_positions;
pub mod files;
pub mod friend_requests;
pub mod friends;
pub mod group_messages;
pub mod group_requests;
pub mod groups;
pub mod manager;
pub mod member_cache;
pub mod passwords;
pub mod permissions;
pub mod private_messages;
pub mod pull_window;
pub mod replay;
pub mod run;
pub mod server_api;
mod store;
pub mod sync;
pub mod token_cache;
pub mod tokens;
mod tx;
pub mod unread;
pub mod words;

use tx::notification;
pub use tx::{IdRange, Locks, Outbox, Tx};
