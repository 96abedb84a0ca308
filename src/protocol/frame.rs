//! What the server writes to sockets: `{"type":"im-notification","content":"<envelope as JSON text>"}`
//! (`contract/01` sections 9.2 and 10). A frame is serialised once and shared by all its receivers.

use std::sync::Arc;
use std::time::Instant;

use bytestring::ByteString;
use serde::Serialize;

use crate::domain::conversation::ConversationType;
use crate::domain::device_position::DevicePosition;
use crate::domain::ids::{MessageId, UserId};

/// The message table that a stored frame belongs to; ids rise within one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    Private,
    Group,
    Channel,
}

impl Stream {
    /// The id of this stream in a position.
    pub fn of(self, position: &mut DevicePosition) -> &mut MessageId {
        match self {
            Stream::Private => &mut position.private,
            Stream::Group => &mut position.group,
            Stream::Channel => &mut position.channel,
        }
    }
}

/// How much a frame matters when a session cannot take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameClass {
    /// A row of a message table. Never skipped: the session is closed instead (`design.md` I5).
    Stored { stream: Stream, id: i64 },
    /// A change that a pull also shows (a read position, a friend request). Never skipped either.
    State,
    /// Not stored anywhere (typing, call signalling): dropped first under pressure.
    Signal,
}

/// One serialised text frame. Cloning shares the text.
#[derive(Clone, Debug)]
pub struct Frame {
    pub text: ByteString,
    pub class: FrameClass,
    /// When it was handed over for delivery; when it was made, before that.
    pub handed_over: Instant,
}

/// One frame for all sessions of the receivers, the unit that a commit hands to the registry.
#[derive(Clone, Debug)]
pub struct Notification {
    pub receivers: Arc<[UserId]>,
    pub frame: Frame,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a, P> {
    conversation_type: i32,
    content_type: i32,
    payload: &'a P,
}

#[derive(Serialize)]
struct TextFrame<'a> {
    r#type: &'a str,
    content: &'a str,
}

impl Frame {
    pub fn new(text: ByteString, class: FrameClass) -> Frame {
        Frame { text, class, handed_over: Instant::now() }
    }

    /// An IM notification: the envelope around `payload`, as text inside the frame.
    ///
    /// # Errors
    /// Only when `payload` cannot be written as JSON, which the payload types of this crate always can.
    pub fn im_notification<P: Serialize>(
        class: FrameClass,
        conversation: ConversationType,
        content_type: i32,
        payload: &P,
    ) -> Result<Frame, serde_json::Error> {
        let envelope = Envelope { conversation_type: conversation as i32, content_type, payload };
        let content = serde_json::to_string(&envelope)?;
        let text = serde_json::to_string(&TextFrame { r#type: "im-notification", content: &content })?;
        Ok(Frame::new(text.into(), class))
    }
}
