//! What waits to be written to one session, under the limits of `design.md` section 6.
//!
//! `UserDevices` puts frames in, the session takes them out, and either of them, the registry or the HTTP layer may
//! close it. Created with the session's actor; ends with the last of its holders. It is shared state rather than mailbox
//! content for one reason: a session whose socket is stalled is not polled, so messages in its mailbox could be neither
//! dropped nor overtaken by a close. Here a cut frees the memory at once, and nothing leaves after it (invariant I5).

mod hold;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use self::hold::Hold;
use crate::domain::device_position::DevicePosition;
use crate::domain::ids::{MessageId, SessionId, UserId};
use crate::protocol::close::CloseReason;
use crate::protocol::frame::{Frame, FrameClass};
use crate::service::replay::ReplayPage;

/// Bytes that every queued item counts besides its text, so that very many tiny frames are bounded too.
const ITEM_OVERHEAD: usize = 64;
/// An empty queue with room for more items than this gives its memory back.
const RETAINED_ITEMS: usize = 32;

/// Counters that all sessions of the node share. The metric handles are looked up once, not per frame.
pub struct NodeLoad {
    in_flight: AtomicUsize,
    frames_sent: metrics::Counter,
    bytes_sent: metrics::Counter,
    /// From the hand-over after the commit to the write to the socket, of the oldest frame of each write.
    push_lag: metrics::Histogram,
}

impl NodeLoad {
    pub(super) fn new() -> NodeLoad {
        NodeLoad {
            in_flight: AtomicUsize::new(0),
            frames_sent: metrics::counter!("nudge_frames_sent_total"),
            bytes_sent: metrics::counter!("nudge_bytes_sent_total"),
            push_lag: metrics::histogram!("nudge_push_lag_seconds"),
        }
    }

    /// Bytes queued for all sessions of this node.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

/// One thing to write.
#[derive(Debug)]
pub(super) enum Outgoing {
    Frame(Frame),
    /// The answer to the text `ping`.
    TextPong,
    /// The server's heartbeat, or what follows a page of a replay: the next one waits for its pong.
    Ping {
        ends_page: bool,
    },
    /// The answer to a client's protocol ping.
    Pong(Bytes),
}

impl Outgoing {
    fn cost(&self) -> usize {
        match self {
            Outgoing::Frame(frame) => frame_cost(frame),
            Outgoing::Pong(payload) => ITEM_OVERHEAD + payload.len(),
            Outgoing::TextPong | Outgoing::Ping { .. } => ITEM_OVERHEAD,
        }
    }
}

fn frame_cost(frame: &Frame) -> usize {
    ITEM_OVERHEAD + frame.text.len()
}

/// Why a session ended, or is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The server ends it, with this close frame where the peer still reads.
    Server(CloseReason),
    /// The client sent a close frame.
    Client,
    /// The connection ended without a close frame.
    PeerGone,
}

impl Ending {
    fn label(self) -> &'static str {
        match self {
            Ending::Server(reason) => reason.label(),
            Ending::Client => "client",
            Ending::PeerGone => "peer_gone",
        }
    }
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// Queued; with `wake` the session has to be told, without it has been told already.
    Queued { wake: bool },
    /// A signal that was left out because the budget is half used.
    Dropped,
    /// It waits until the replay has come to it; there is nothing to write now.
    Held,
    /// The replay has it, or will have it.
    Replayed,
    /// It did not fit: the session has been cut.
    Cut,
    /// The session had ended before.
    Closed,
}

/// What the session got from one [`SessionQueue::take`].
pub(super) struct Taken {
    /// More is waiting.
    pub more: bool,
    /// The session has ended: nothing was taken and nothing will be.
    pub ending: Option<Ending>,
}

/// The queue of one session.
pub struct SessionQueue {
    user: UserId,
    session: SessionId,
    limit: usize,
    node: Arc<NodeLoad>,
    state: Mutex<State>,
}

struct State {
    items: VecDeque<Outgoing>,
    /// Live frames behind a replay, while one runs.
    hold: Option<Box<Hold>>,
    /// A replay held, or will hold, every stored frame up to here.
    replayed: Option<DevicePosition>,
    /// Of the items and of the frames on hold.
    bytes: usize,
    /// Since when the oldest item waits without the session having taken anything.
    waiting_since: Option<Instant>,
    /// The session was told that there is something, and has not looked since.
    told: bool,
    ending: Option<Ending>,
}

impl SessionQueue {
    pub(super) fn new(user: UserId, session: SessionId, limit: usize, node: Arc<NodeLoad>) -> SessionQueue {
        let state = State {
            items: VecDeque::new(),
            hold: None,
            replayed: None,
            bytes: 0,
            waiting_since: None,
            told: false,
            ending: None,
        };
        SessionQueue { user, session, limit, node, state: Mutex::new(state) }
    }

    /// Holds stored frames back until [`SessionQueue::add_page`] says that the replay is done with their stream. To be
    /// called before anything can be pushed.
    pub(super) fn hold(&self) {
        self.state().hold = Some(Box::default());
    }

    pub fn user(&self) -> UserId {
        self.user
    }

    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Bytes waiting to be taken by the session.
    pub fn in_flight(&self) -> usize {
        self.state().bytes
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        self.state().ending
    }

    /// Queues a frame, leaves it out, or cuts the session, as its class and the budget say.
    pub(super) fn push(&self, frame: &Frame) -> Pushed {
        let item = Outgoing::Frame(frame.clone());
        let cost = item.cost();
        let mut state = self.state();
        if state.ending.is_some() {
            return Pushed::Closed;
        }
        if frame.class == FrameClass::Signal && state.bytes + cost > self.limit / 2 {
            return Pushed::Dropped;
        }
        if let FrameClass::Stored { stream, id } = frame.class
            && state.replayed.as_mut().is_some_and(|replayed| MessageId(id) <= *stream.of(replayed))
        {
            return Pushed::Replayed;
        }
        // A frame that is larger than the whole budget still has to have a way out of an empty queue.
        if state.bytes + cost > self.limit && state.bytes > 0 {
            self.end_locked(&mut state, Ending::Server(CloseReason::SlowConsumer));
            return Pushed::Cut;
        }
        if state.hold.as_mut().is_some_and(|hold| hold.keep(frame)) {
            self.count(&mut state, cost);
            return Pushed::Held;
        }
        self.add(&mut state, item, cost);
        let wake = !state.told;
        state.told = true;
        Pushed::Queued { wake }
    }

    /// Queues an answer or a heartbeat. Only the session itself does so, right before it takes: no limit applies.
    pub(super) fn push_control(&self, item: Outgoing) {
        let cost = item.cost();
        let mut state = self.state();
        if state.ending.is_none() {
            self.add(&mut state, item, cost);
        }
    }

    /// Queues a page of a replay. What is on hold and also in the replay goes; what waits for a stream that is done
    /// follows the page. If pages are left, a ping ends this one.
    pub(super) fn add_page(&self, page: ReplayPage) {
        let mut state = self.state();
        if state.ending.is_some() {
            return;
        }
        let replayed = state.replayed.map_or(page.horizon, |before| before.highest(page.horizon));
        state.replayed = Some(replayed);
        let mut hold = state.hold.take().unwrap_or_default();
        let superseded = hold.drop_up_to(replayed);
        self.discount(&mut state, superseded.iter().map(frame_cost).sum());
        for frame in page.frames {
            let item = Outgoing::Frame(frame);
            let cost = item.cost();
            self.add(&mut state, item, cost);
        }
        for frame in hold.release(page.cursor) {
            self.discount(&mut state, frame_cost(&frame));
            let item = Outgoing::Frame(frame);
            let cost = item.cost();
            self.add(&mut state, item, cost);
        }
        if !page.cursor.is_done() {
            state.hold = Some(hold);
            let item = Outgoing::Ping { ends_page: true };
            let cost = item.cost();
            self.add(&mut state, item, cost);
        }
    }

    /// Hands out items in order until `max_bytes` is reached (at least one, if there is any).
    pub(super) fn take(&self, max_bytes: usize, mut write: impl FnMut(Outgoing)) -> Taken {
        let mut state = self.state();
        state.told = false;
        if state.ending.is_some() || state.items.is_empty() {
            return Taken { more: false, ending: state.ending };
        }
        let (mut taken, mut frames, mut frame_bytes, mut oldest) = (0, 0, 0, None);
        while taken < max_bytes {
            let Some(item) = state.items.pop_front() else { break };
            taken += item.cost();
            if let Outgoing::Frame(frame) = &item {
                frames += 1;
                frame_bytes += frame.text.len() as u64;
                oldest = oldest.or(Some(frame.handed_over));
            }
            write(item);
        }
        self.discount(&mut state, taken);
        let more = !state.items.is_empty();
        state.waiting_since = more.then(Instant::now);
        if !more && state.items.capacity() > RETAINED_ITEMS {
            state.items = VecDeque::new();
        }
        drop(state);
        if frames > 0 {
            self.node.frames_sent.increment(frames);
            self.node.bytes_sent.increment(frame_bytes);
        }
        if let Some(oldest) = oldest {
            self.node.push_lag.record(oldest.elapsed().as_secs_f64());
        }
        Taken { more, ending: None }
    }

    /// Ends the session: frees what is queued, lets nothing in any more, counts the reason. Only the first call does
    /// anything, and answers true.
    pub fn end(&self, ending: Ending) -> bool {
        self.end_locked(&mut self.state(), ending)
    }

    /// Ends the session because its connection is gone. Where the kernel was faster than [`SessionQueue::cut_if_stalled`] to
    /// drop a peer that does not read, the peer was a slow one all the same.
    pub(super) fn end_without_close(&self, stall_timeout: Duration) {
        let mut state = self.state();
        let waited = state.waiting_since.map(|since| since.elapsed()).unwrap_or_default();
        let slow = waited > stall_timeout / 2;
        let ending = if slow { Ending::Server(CloseReason::SlowConsumer) } else { Ending::PeerGone };
        self.end_locked(&mut state, ending);
    }

    /// Ends a session that never was in the registry, without counting it.
    pub(super) fn discard(&self) {
        self.state().ending.get_or_insert(Ending::PeerGone);
    }

    /// Cuts the session if something waits and nothing was taken for `stall_timeout`. Answers whether it was cut now.
    pub(super) fn cut_if_stalled(&self, stall_timeout: Duration) -> bool {
        let mut state = self.state();
        let stalled = state.waiting_since.is_some_and(|since| since.elapsed() >= stall_timeout);
        stalled && self.end_locked(&mut state, Ending::Server(CloseReason::SlowConsumer))
    }

    fn add(&self, state: &mut State, item: Outgoing, cost: usize) {
        if state.items.is_empty() {
            state.waiting_since = Some(Instant::now());
        }
        state.items.push_back(item);
        self.count(state, cost);
    }

    fn count(&self, state: &mut State, cost: usize) {
        state.bytes += cost;
        self.node.in_flight.fetch_add(cost, Ordering::Relaxed);
    }

    fn discount(&self, state: &mut State, cost: usize) {
        state.bytes -= cost;
        self.node.in_flight.fetch_sub(cost, Ordering::Relaxed);
    }

    fn end_locked(&self, state: &mut State, ending: Ending) -> bool {
        if state.ending.is_some() {
            return false;
        }
        let unsent = state.items.len() + state.hold.take().map_or(0, |hold| hold.len());
        state.ending = Some(ending);
        state.items = VecDeque::new();
        self.node.in_flight.fetch_sub(std::mem::take(&mut state.bytes), Ordering::Relaxed);
        state.waiting_since = None;
        metrics::counter!("nudge_closes_total", "reason" => ending.label()).increment(1);
        if unsent > 0 {
            metrics::counter!("nudge_frames_dropped_total", "reason" => "session_ended").increment(unsent as u64);
        }
        if ending == Ending::Server(CloseReason::SlowConsumer) {
            tracing::info!(user.id = self.user.0, session.id = self.session.0, unsent, "slow session cut");
        } else {
            let reason = ending.label();
            tracing::debug!(user.id = self.user.0, session.id = self.session.0, reason, unsent, "session ends");
        }
        true
    }

    /// No code panics while it holds the lock, and the state is sound between any two statements: poison is ignored.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::Stream;
    use crate::service::replay::ReplayCursor;

    fn queue(limit: usize) -> SessionQueue {
        SessionQueue::new(UserId(1), SessionId(1), limit, Arc::new(NodeLoad::new()))
    }

    fn frame(class: FrameClass, bytes: usize) -> Frame {
        Frame::new("x".repeat(bytes).into(), class)
    }

    fn stored(id: i64, bytes: usize) -> Frame {
        frame(FrameClass::Stored { stream: Stream::Private, id }, bytes)
    }

    #[test]
    fn a_stored_frame_that_does_not_fit_cuts_and_frees_everything() {
        let queue = queue(1_000);
        assert_eq!(queue.push(&stored(1, 900)), Pushed::Queued { wake: true });
        assert_eq!(queue.node.in_flight(), 964);
        assert_eq!(queue.push(&stored(2, 900)), Pushed::Cut);
        assert_eq!(queue.push(&stored(3, 1)), Pushed::Closed);
        assert_eq!((queue.in_flight(), queue.node.in_flight()), (0, 0));
        let taken = queue.take(usize::MAX, |item| panic!("wrote {item:?} after the cut"));
        assert_eq!(taken.ending, Some(Ending::Server(CloseReason::SlowConsumer)));
    }

    #[test]
    fn signals_are_left_out_when_the_budget_is_half_used() {
        let queue = queue(1_000);
        assert_eq!(queue.push(&stored(1, 400)), Pushed::Queued { wake: true });
        assert_eq!(queue.push(&frame(FrameClass::Signal, 1)), Pushed::Dropped);
        assert_eq!(queue.push(&frame(FrameClass::State, 1)), Pushed::Queued { wake: false });
    }

    #[test]
    fn taking_keeps_order_and_stops_at_the_byte_limit() {
        let queue = queue(10_000);
        for id in 0..10 {
            queue.push(&stored(id, 36));
        }
        let mut ids = Vec::new();
        let mut take = |max| {
            queue.take(max, |item| match item {
                Outgoing::Frame(Frame { class: FrameClass::Stored { id, .. }, .. }) => ids.push(id),
                other => panic!("{other:?}"),
            })
        };
        assert!(take(300).more);
        assert!(!take(usize::MAX).more);
        assert_eq!(ids, (0..10).collect::<Vec<_>>());
        assert_eq!((queue.in_flight(), queue.node.in_flight()), (0, 0));
        assert_eq!(queue.push(&stored(10, 1)), Pushed::Queued { wake: true });
    }

    fn page(ids: &[i64], horizon: i64, is_done: bool) -> ReplayPage {
        let at = DevicePosition { private: MessageId(horizon), ..DevicePosition::START };
        let cursor = ReplayCursor { after: at, private_is_done: is_done, group_is_done: true };
        ReplayPage { frames: ids.iter().map(|id| stored(*id, 36)).collect(), cursor, horizon: at }
    }

    /// Takes everything: ids of frames, and -1 for the ping after a page.
    fn take_ids(queue: &SessionQueue) -> Vec<i64> {
        let mut ids = Vec::new();
        queue.take(usize::MAX, |item| match item {
            Outgoing::Frame(Frame { class: FrameClass::Stored { id, .. }, .. }) => ids.push(id),
            Outgoing::Ping { ends_page: true } => ids.push(-1),
            other => panic!("{other:?}"),
        });
        ids
    }

    #[test]
    fn live_frames_wait_behind_the_pages_and_come_once() {
        let queue = queue(10_000);
        queue.hold();
        assert_eq!((queue.push(&stored(7, 36)), queue.push(&stored(9, 36))), (Pushed::Held, Pushed::Held));
        assert_eq!(queue.in_flight(), 200);
        queue.add_page(page(&[3, 4], 8, false));
        assert_eq!(take_ids(&queue), [3, 4, -1]);
        assert_eq!(queue.in_flight(), 100, "7 is in a later page");
        assert_eq!(queue.push(&stored(8, 36)), Pushed::Replayed, "it was routed late");
        assert_eq!(queue.push(&stored(11, 36)), Pushed::Held);
        queue.add_page(page(&[7, 8, 9, 10], 10, true));
        assert_eq!(queue.push(&stored(10, 36)), Pushed::Replayed);
        assert_eq!(queue.push(&stored(12, 36)), Pushed::Queued { wake: true });
        assert_eq!(take_ids(&queue), [7, 8, 9, 10, 11, 12]);
        assert_eq!((queue.in_flight(), queue.node.in_flight()), (0, 0));
        assert!(queue.state().hold.is_none());
    }

    #[test]
    fn a_replay_holds_back_only_what_it_brings() {
        let queue = queue(10_000);
        queue.hold();
        let channel = frame(FrameClass::Stored { stream: Stream::Channel, id: 1 }, 36);
        for other in [channel, frame(FrameClass::State, 36), frame(FrameClass::Signal, 36)] {
            assert!(matches!(queue.push(&other), Pushed::Queued { .. }));
        }
        let in_group = frame(FrameClass::Stored { stream: Stream::Group, id: 1 }, 36);
        assert_eq!(queue.push(&in_group), Pushed::Held);
        queue.add_page(page(&[], 0, false));
        assert!(matches!(queue.push(&in_group), Pushed::Queued { .. }), "groups are done");
        assert_eq!(queue.push(&stored(1, 36)), Pushed::Held);
    }

    #[test]
    fn frames_on_hold_count_in_the_budget_and_no_stall() {
        let queue = queue(1_000);
        queue.hold();
        assert_eq!(queue.push(&stored(1, 800)), Pushed::Held);
        assert!(!queue.cut_if_stalled(Duration::ZERO), "the replay is at work");
        assert_eq!(queue.push(&stored(2, 200)), Pushed::Cut);
        assert_eq!((queue.in_flight(), queue.node.in_flight()), (0, 0));
        queue.add_page(page(&[1], 1, true));
        assert_eq!(queue.in_flight(), 0, "nothing comes after the cut");
    }

    #[test]
    fn only_the_first_ending_counts() {
        let queue = queue(1_000);
        assert!(queue.end(Ending::Client));
        assert!(!queue.end(Ending::Server(CloseReason::Resync)));
        assert_eq!(queue.ending(), Some(Ending::Client));
    }

    #[test]
    fn waiting_without_progress_is_a_stall() {
        let queue = queue(1_000);
        assert!(!queue.cut_if_stalled(Duration::ZERO), "nothing waits");
        queue.push(&stored(1, 1));
        assert!(!queue.cut_if_stalled(Duration::from_secs(60)));
        assert!(queue.cut_if_stalled(Duration::ZERO));
        assert!(!queue.cut_if_stalled(Duration::ZERO), "cut once");
    }
}
