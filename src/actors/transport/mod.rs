//! The WebSocket itself: handshake, the `Session` actor, and the options of an accepted connection. Everything that
//! touches `actix_web_actors` is in this file, so that another transport can take its place.
//!
//! [`open_session`] starts the actor, one per socket, on the worker that serves the connection. It is polled only while
//! its socket takes bytes: nothing else may depend on it, and a peer that does not read is cut from outside, by the
//! queue limits and by the kernel (`TCP_USER_TIMEOUT`). It ends with its socket.
//!
//! Inbound: text `ping` is answered, any other text is ignored (fragmented or not, it must be UTF-8); a binary message
//! is a protocol error (1002), since no client of this protocol sends one.

mod guard;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actix::fut::wrap_future;
use actix::{Actor, ActorContext, ActorFuture, ActorFutureExt, ActorState, AsyncContext, Handler, StreamHandler};
use actix_http::ws::Item;
use actix_web::dev::Extensions;
use actix_web::{HttpRequest, HttpResponse, web};
use actix_web_actors::ws::{self, Message, ProtocolError, WebsocketContext, WsResponseBuilder};
use bytes::BytesMut;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::actors::queue::{Ending, Outgoing, SessionQueue};
use crate::actors::registry::{Attach, AttachRefused, Registry};
use crate::actors::replay::{Resume, Tracker};
use crate::actors::session::{Attachment, QueueChanged, SessionHandle, SessionIdentity};
use crate::config::WebSocketConfig;
use crate::error::AppError;
use crate::protocol::close::CloseReason;
use crate::service::replay::ReplayPage;

use guard::{Gate, GuardedPayload};

/// Bytes that the kernel queues for a peer that does not read. Smaller costs throughput on long lines.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// Bytes encoded in one turn: enough to share a write among many frames, little enough that a stalled peer's frames
/// stay in the queue, where a cut frees them.
const WRITE_BYTES: usize = 16 << 10;

/// Why no session was opened; the HTTP layer answers 400, 429 or 503.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("not a WebSocket handshake: {0}")]
    Handshake(actix_web::Error),
    #[error("the user has too many sessions")]
    TooManySessions,
    #[error("the server is stopping")]
    Stopping,
    #[error("what the device has missed cannot be read: {0}")]
    Replay(AppError),
}

/// An attached session whose handshake answer has not been sent yet.
pub struct OpenSession {
    /// The 101. Dropped instead of returned, it ends the session.
    pub response: HttpResponse,
    /// Closes the session, for instance when the token turns out to be revoked after the attach.
    pub handle: SessionHandle,
}

/// Answers a WebSocket handshake: starts a session and attaches it, so that it is reachable before the client learns
/// that it is connected. With `resume` it first gets what its device has missed.
///
/// # Errors
/// The request is no handshake, the user has too many sessions, the server is stopping, or the replay cannot be read.
pub async fn open_session(
    request: &HttpRequest,
    payload: web::Payload,
    registry: &Registry,
    config: &WebSocketConfig,
    identity: SessionIdentity,
    resume: Option<Resume>,
) -> Result<OpenSession, OpenError> {
    let gate = Rc::new(Gate::default());
    let queue = registry.new_queue(identity.user);
    let (attachment, tracker) = (AttachmentSlot::default(), TrackerSlot::default());
    let session = Session {
        queue: queue.clone(),
        gate: gate.clone(),
        attachment: attachment.clone(),
        connection: request.conn_data::<AttachmentSlot>().cloned(),
        expires_at_ms: identity.expires_at_ms,
        ping_interval: Duration::from_millis(config.ping_interval_ms),
        last_sign_of_life: Instant::now(),
        fragments: None,
        tracker_slot: tracker.clone(),
        tracker: None,
    };
    let guarded = GuardedPayload::new(payload, config.max_frame_bytes, gate);
    let (actor, response) = WsResponseBuilder::new(session, request, guarded)
        .frame_size(config.max_frame_bytes)
        .start_with_addr()
        .map_err(OpenError::Handshake)?;
    let handle = SessionHandle { queue, session: actor.recipient() };
    if resume.is_some() {
        handle.queue.hold();
    }
    match registry.attach(Attach { identity, handle: handle.clone() }).await {
        Ok(attached) => attachment.hold(Arc::new(attached)),
        Err(AttachRefused::TooManySessions) => return Err(OpenError::TooManySessions),
        Err(AttachRefused::Stopping) => return Err(OpenError::Stopping),
    }
    if let Some(resume) = resume {
        // After the attach: a commit from now on is in the page, or pushed, or both.
        let (begun, page) = resume.begin().await.map_err(OpenError::Replay)?;
        handle.queue.add_page(page);
        tracker.set(Some(Box::new(begun)));
    }
    Ok(OpenSession { response, handle })
}

/// For `HttpServer::on_connect`: [`prepare_socket`], and a place in the connection for the attachment of its session.
/// Without that place a session stops counting when its actor ends, although its socket may linger. The server should
/// also set `h1_write_buffer_size` to 16 KiB: what a connection keeps after a burst depends on it.
pub fn prepare_connection(connection: &dyn Any, data: &mut Extensions, config: &WebSocketConfig) {
    if let Some(stream) = connection.downcast_ref::<TcpStream>() {
        prepare_socket(stream, config);
    }
    data.insert(AttachmentSlot::default());
}

/// Bounds what the kernel holds for a peer, and lets it drop one that takes nothing for the stall timeout.
pub fn prepare_socket(stream: &TcpStream, config: &WebSocketConfig) {
    let socket = SockRef::from(stream);
    let stall_timeout = Duration::from_millis(config.stall_timeout_ms);
    let outcome =
        socket.set_send_buffer_size(SEND_BUFFER_BYTES).and_then(|()| socket.set_tcp_user_timeout(Some(stall_timeout)));
    if let Err(error) = outcome {
        tracing::warn!(%error, "cannot set the options of an accepted socket");
    }
}

/// Holds an attachment: one slot belongs to the session's actor, one to its connection.
#[derive(Clone, Default)]
struct AttachmentSlot(Rc<RefCell<Option<Arc<Attachment>>>>);

impl AttachmentSlot {
    fn hold(&self, attachment: Arc<Attachment>) {
        self.0.replace(Some(attachment));
    }

    fn held(&self) -> Option<Arc<Attachment>> {
        self.0.borrow().clone()
    }
}

/// Where a handshake leaves the tracker for the session's actor, which has not started by then.
type TrackerSlot = Rc<Cell<Option<Box<Tracker>>>>;

/// One WebSocket.
struct Session {
    queue: Arc<SessionQueue>,
    gate: Rc<Gate>,
    attachment: AttachmentSlot,
    connection: Option<AttachmentSlot>,
    expires_at_ms: i64,
    ping_interval: Duration,
    last_sign_of_life: Instant,
    /// The text of an unfinished fragmented message; the guard bounds it.
    fragments: Option<BytesMut>,
    tracker_slot: TrackerSlot,
    /// None for a client that wants no replay.
    tracker: Option<Box<Tracker>>,
}

impl Session {
    /// Sends the close frame and ends. What is queued is not written any more.
    fn close(&self, reason: CloseReason, ctx: &mut WebsocketContext<Self>) {
        self.queue.end(Ending::Server(reason));
        Self::write_close(reason, ctx);
    }

    fn write_close(reason: CloseReason, ctx: &mut WebsocketContext<Self>) {
        let description = Some(reason.text().to_owned());
        ctx.close(Some(ws::CloseReason { code: reason.code().into(), description }));
        ctx.stop();
    }

    /// Writes a turn's worth of what waits, or the close frame. Answers whether more waits.
    fn write_waiting(&mut self, ctx: &mut WebsocketContext<Self>) -> bool {
        let tracker = &mut self.tracker;
        let taken = self.queue.take(WRITE_BYTES, |item| match item {
            Outgoing::Frame(frame) => {
                if let Some(tracker) = tracker {
                    tracker.write(&frame);
                }
                ctx.text(frame.text);
            }
            Outgoing::TextPong => ctx.text("pong"),
            Outgoing::Ping { ends_page } => match tracker {
                Some(tracker) => ctx.ping(&tracker.ping(ends_page, Instant::now())),
                None => ctx.ping(b""),
            },
            Outgoing::Pong(payload) => ctx.pong(&payload),
        });
        match taken.ending {
            Some(Ending::Server(reason)) => Self::write_close(reason, ctx),
            Some(Ending::Client | Ending::PeerGone) => ctx.stop(),
            None => {}
        }
        taken.more
    }

    /// Does what is due, and says when to come back: at the next heartbeat, or at the token's end if that is earlier.
    fn on_timer(&self, ctx: &mut WebsocketContext<Self>) -> Instant {
        let now = Instant::now();
        let left = self.lifetime_left();
        let patience = self.ping_interval * 2;
        let is_stuck = self.tracker.as_ref().is_some_and(|tracker| tracker.is_stuck(patience, now));
        if left.is_zero() {
            self.close(CloseReason::SignedOut, ctx);
        } else if is_stuck || now.duration_since(self.last_sign_of_life) >= patience {
            self.close(CloseReason::HeartbeatTimeout, ctx);
        } else {
            self.queue.push_control(Outgoing::Ping { ends_page: false });
        }
        now + left.min(self.ping_interval)
    }

    fn lifetime_left(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Duration::from_millis(u64::try_from(self.expires_at_ms).unwrap_or(0)).saturating_sub(now)
    }

    fn on_text(&self, text: &[u8]) {
        // Anything else is ignored, as in `contract/01` section 9.2.
        if text == b"ping" {
            self.queue.push_control(Outgoing::TextPong);
        }
    }

    fn on_fragment(&mut self, item: Item, ctx: &mut WebsocketContext<Self>) {
        match item {
            Item::FirstText(text) => self.fragments = Some(BytesMut::from(text)),
            Item::FirstBinary(_) => self.close(CloseReason::ProtocolError, ctx),
            Item::Continue(text) => {
                if let Some(fragments) = &mut self.fragments {
                    fragments.extend_from_slice(&text);
                }
            }
            Item::Last(text) => {
                let mut message = self.fragments.take().unwrap_or_default();
                message.extend_from_slice(&text);
                match std::str::from_utf8(&message) {
                    Ok(_) => self.on_text(&message),
                    Err(_) => self.close(CloseReason::InvalidUtf8, ctx),
                }
            }
        }
    }

    fn on_pong(&mut self, payload: &[u8], ctx: &mut WebsocketContext<Self>) {
        if let Some(read) = self.tracker.as_mut().and_then(|tracker| tracker.pong(payload)) {
            ctx.spawn(wrap_future(read).map(|page, session: &mut Session, ctx| session.add_page(page, ctx)));
        }
    }

    fn add_page(&mut self, page: Result<ReplayPage, AppError>, ctx: &mut WebsocketContext<Self>) {
        match page {
            Ok(page) => {
                if let Some(tracker) = &mut self.tracker {
                    tracker.turn(&page);
                }
                self.queue.add_page(page);
                // The page is written when the session is polled next.
                ctx.notify(QueueChanged);
            }
            Err(error) => {
                tracing::warn!(user.id = self.queue.user().0, %error, "a replay cannot go on");
                self.close(CloseReason::Resync, ctx);
            }
        }
    }

    fn on_frame(&mut self, message: Message, ctx: &mut WebsocketContext<Self>) {
        match message {
            Message::Text(text) => self.on_text(text.as_bytes()),
            Message::Binary(_) => self.close(CloseReason::ProtocolError, ctx),
            Message::Continuation(item) => self.on_fragment(item, ctx),
            Message::Ping(payload) => self.queue.push_control(Outgoing::Pong(payload)),
            Message::Pong(payload) => self.on_pong(&payload, ctx),
            Message::Nop => {}
            Message::Close(reason) => {
                self.queue.end(Ending::Client);
                // The same code goes back (RFC 6455 section 5.5.1).
                ctx.close(reason.map(|reason| reason.code.into()));
                ctx.stop();
            }
        }
    }
}

impl Actor for Session {
    type Context = WebsocketContext<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        // A response that is dropped unsent starts the actor only to stop it.
        if ctx.state() != ActorState::Running {
            return;
        }
        if let (Some(connection), Some(attachment)) = (&self.connection, self.attachment.held()) {
            connection.hold(attachment);
        }
        self.tracker = self.tracker_slot.take();
        self.last_sign_of_life = Instant::now();
        let first = Instant::now() + self.lifetime_left().min(self.ping_interval);
        ctx.spawn(Pulse { timer: Box::pin(sleep_until(first)) });
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        // What was confirmed is noted before anybody hears that the session is gone.
        self.tracker = None;
        if let Some(attachment) = self.attachment.0.take() {
            attachment.session_ended();
        }
    }
}

impl Handler<QueueChanged> for Session {
    type Result = ();

    /// Being polled is all that is needed: [`Pulse`] looks into the queue.
    fn handle(&mut self, _: QueueChanged, _: &mut Self::Context) {}
}

impl StreamHandler<Result<Message, ProtocolError>> for Session {
    fn handle(&mut self, message: Result<Message, ProtocolError>, ctx: &mut Self::Context) {
        self.gate.frame_handled();
        self.last_sign_of_life = Instant::now();
        match message {
            Ok(message) => self.on_frame(message, ctx),
            Err(error) => self.close(close_reason(&error), ctx),
        }
    }

    /// The guard has refused a frame, or the connection has ended.
    fn finished(&mut self, ctx: &mut Self::Context) {
        match self.gate.refused() {
            Some(reason) => self.close(reason, ctx),
            None => ctx.stop(),
        }
    }
}

/// The crate reports text that is not UTF-8 as an I/O error of kind `Other`; true I/O errors end the guarded payload.
fn close_reason(error: &ProtocolError) -> CloseReason {
    match error {
        ProtocolError::Overflow => CloseReason::TooLarge,
        ProtocolError::Io(error) if error.kind() == std::io::ErrorKind::Other => CloseReason::InvalidUtf8,
        _ => CloseReason::ProtocolError,
    }
}

/// Runs whenever the session is polled, after its incoming frames: does what is due, then writes. One timer serves
/// heartbeat and expiry.
struct Pulse {
    timer: Pin<Box<Sleep>>,
}

impl ActorFuture<Session> for Pulse {
    type Output = ();

    fn poll(
        mut self: Pin<&mut Self>,
        session: &mut Session,
        ctx: &mut WebsocketContext<Session>,
        task: &mut Context<'_>,
    ) -> Poll<()> {
        while self.timer.as_mut().poll(task).is_ready() {
            let next = session.on_timer(ctx);
            if ctx.state() != ActorState::Running {
                return Poll::Pending;
            }
            self.timer.as_mut().reset(next);
        }
        if session.write_waiting(ctx) {
            task.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
