//! Our Rust client: used by the load simulator and by the integration tests, and an example of a client that loses
//! nothing. It knows the server only by its wire protocol; it needs tokio, not actix, and its futures are `Send`.
//!
//! The rules that it keeps (`design.md` section 7):
//! - A push is a hint. Only pulls move the pull cursor; never a push, nor the answer to a send.
//! - A pull runs on connect and on every reconnect, by `/im/sync` until no stream has more. Messages are merged by id.
//! - Cursors of states go back five seconds before a scan, and only forward afterwards.
//! - A send is repeated under its first client id until it is answered.
//! - Members of a group are fetched when they are asked for, and anew after an event of the group or a reconnect.
//! - Peers' read positions are fetched when they are asked for, once per connection.
//! - It reconnects after min(1000·2ⁿ, 30000) ms plus up to a second, but not after it was signed out or closed from
//!   another device. It says `resume=0`, since it needs no replay.
//!
//! ```no_run
//! use nudge::client::{Device, DeviceConfig, DeviceEvent, Endpoint, Push};
//!
//! # async fn example() -> Result<(), nudge::client::ClientError> {
//! let endpoint = Endpoint::new("http://127.0.0.1:48080")?;
//! let device = Device::sign_in(endpoint, "alice", "secret", DeviceConfig::default()).await?;
//! let mut connection = device.connect();
//! while let Some(event) = connection.next().await {
//!     if let DeviceEvent::Push { push: Push::PrivateMessage(message), is_new: true, .. } = event {
//!         device.read(message.sender_id, message.id).await?;
//!         device.send_text(message.sender_id, "got it").await?;
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Thousands of devices in one process: give them clones of one [`Endpoint`] and one `Arc<DeviceConfig>` with a
//! `store_capacity` of 0, and an [`Observer`] each instead of a task that reads events.

mod api;
mod backoff;
mod connection;
mod cursors;
mod device;
mod endpoint;
mod error;
mod log;
mod push;
mod socket;
mod store;
mod sync;
#[cfg(test)]
mod tests;
mod types;

pub use api::Api;
pub use backoff::Backoff;
pub use connection::{Connection, DeviceEvent, Observer};
pub use cursors::{MessageCursor, OVERLAP_MS, StateCursor};
pub use device::{Device, DeviceConfig};
pub use endpoint::{Endpoint, REQUEST_TIMEOUT};
pub use error::ClientError;
pub use push::Push;
pub use store::Store;
pub use sync::{Pulled, Unread, UnreadConversation};
pub use types::{
    ConversationRead, GroupDraft, GroupMessage, ImportedTokens, ImportedUser, NewUser, PrivateDraft, PrivateMessage,
    ReadPayload, ReceiptPayload, STATUS_RECALLED, Session, Tokens, TypingPayload,
};
