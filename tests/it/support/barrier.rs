//! What a socket was told until now, exactly: a marker is sent down the way of all notifications, which is a queue.
//! (A `ping` is answered by the session itself and can overtake what is still on its way to it.)

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use nudge::domain::conversation::ConversationType;
use nudge::domain::ids::UserId;
use nudge::protocol::frame::{Frame, FrameClass, Notification};
use serde_json::json;

use super::app::{Person, Push, Socket, TestApp};

/// A content type that the server does not have.
const MARKER: i64 = 9_999;

/// Every notification that was committed for a person before now and not yet taken from this socket. The person's
/// other sockets get the marker too, and pass over it when they are asked the same.
pub async fn told(app: &TestApp, person: &Person, socket: &mut Socket) -> Vec<Push> {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let payload = json!({"number": LAST.fetch_add(1, Ordering::Relaxed)});
    let number = i32::try_from(MARKER).unwrap();
    let frame = Frame::im_notification(FrameClass::State, ConversationType::None, number, &payload).unwrap();
    let receivers: Arc<[UserId]> = Arc::from([UserId(person.id)]);
    app.server.state().registry.notify(vec![Notification { receivers, frame }]).unwrap();
    let mut pushes = Vec::new();
    loop {
        match socket.next().await {
            push if push.content_type != MARKER => pushes.push(push),
            push if push.payload == payload => return pushes,
            _ => {}
        }
    }
}
