//! Resume replay (`design.md` section 7): a device that comes back gets the stored frames again that it has not
//! confirmed, before live ones. Clients let pushes and answers move their pull cursor, so what was on its way to them
//! while their socket died is in no later pull.
//!
//! [`Replays`] belongs to the server and opens a [`Resume`] for each handshake; the first page is read before the
//! handshake is answered, and is nearly always the last. [`Tracker`] belongs to the session: it knows what was written
//! before which ping, confirms it by the pong, and asks for the next page when the pong of the page before has come.
//! Meanwhile the queue holds live frames back. None of it runs for a client that says `resume=0`.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::actors::db_reader::DbReaders;
use crate::actors::positions::{Claim, Positions};
use crate::clock::Clock;
use crate::config::MessageConfig;
use crate::domain::device_position::DevicePosition;
use crate::domain::ids::{LoginId, MessageId, UserId};
use crate::error::AppError;
use crate::protocol::frame::{Frame, FrameClass, Stream};
use crate::service::device_positions::{self, NewDevice};
use crate::service::pull_window::PullWindow;
use crate::service::replay::{ReplayCursor, ReplayPage, ReplayRules, read_page};

/// Bytes of a ping's number.
const PING_BYTES: usize = 8;

/// What replaying needs of the server. Cheap to clone.
#[derive(Clone)]
pub struct Replays {
    positions: Positions,
    source: Arc<Source>,
}

/// Where pages come from.
struct Source {
    readers: DbReaders,
    clock: Clock,
    rules: MessageConfig,
    private_window: Arc<PullWindow>,
    group_window: Arc<PullWindow>,
}

/// A device that connects: what it has confirmed, and the way to the rest.
pub struct Resume {
    claim: Claim,
    user: UserId,
    source: Arc<Source>,
}

/// What one session has written and what of it is confirmed.
pub(super) struct Tracker {
    claim: Claim,
    /// The highest ids written: everything that the user sees up to them has been written.
    written: DevicePosition,
    /// The earliest ping that is not answered, and what its pong confirms.
    pinged: Option<(u64, DevicePosition)>,
    /// The latest one, if that is another: a peer may answer this one alone (RFC 6455 section 5.5.3).
    pinged_again: Option<(u64, DevicePosition)>,
    last_ping: u64,
    /// Only while pages are left.
    replay: Option<Box<Unfinished>>,
}

struct Unfinished {
    user: UserId,
    source: Arc<Source>,
    cursor: ReplayCursor,
    /// The ping behind the last page, and since when its pong is waited for.
    awaited: Option<(u64, Instant)>,
}

impl Replays {
    pub fn new(
        positions: Positions,
        readers: DbReaders,
        clock: Clock,
        rules: MessageConfig,
        (private_window, group_window): (Arc<PullWindow>, Arc<PullWindow>),
    ) -> Replays {
        Replays { positions, source: Arc::new(Source { readers, clock, rules, private_window, group_window }) }
    }

    /// Finds out what a device has confirmed. One that is seen for the first time starts at the present counter values,
    /// and is stored before it gets anything: otherwise it would be new again after a crash.
    ///
    /// # Errors
    /// `Unauthenticated` when the login has ended; whatever keeps the database from answering.
    pub async fn open(&self, user: UserId, login: LoginId, device: String) -> Result<Resume, AppError> {
        let name = device.clone();
        let look = async move |db: &mut _| device_positions::look(db, login, &name).await;
        let known = match self.source.readers.run(look).await? {
            (Some(known), _) => known,
            (None, counters) => {
                let new = NewDevice { login, device, position: counters };
                self.positions.remember(new).await?.ok_or(AppError::Unauthenticated)?
            }
        };
        Ok(Resume { claim: self.positions.claim(known), user, source: self.source.clone() })
    }

    /// Writes what sessions have confirmed; for the end of the server.
    pub async fn flush(&self) {
        self.positions.flush().await;
    }
}

impl Source {
    async fn read(self: Arc<Self>, user: UserId, cursor: ReplayCursor) -> Result<ReplayPage, AppError> {
        let source = self.clone();
        let page = self.readers.run(async move |db| {
            let rules = ReplayRules {
                now: source.clock.now(),
                config: &source.rules,
                private_window: &source.private_window,
                group_window: &source.group_window,
            };
            read_page(db, user, cursor, &rules).await
        });
        let page = page.await?;
        if !page.frames.is_empty() {
            metrics::counter!("nudge_replay_pages_total").increment(1);
            metrics::counter!("nudge_replay_frames_total").increment(page.frames.len() as u64);
        }
        Ok(page)
    }
}

impl Resume {
    /// Reads the first page. The session must hold live frames back by now.
    pub(super) async fn begin(self) -> Result<(Tracker, ReplayPage), AppError> {
        let Resume { claim, user, source } = self;
        let start = claim.start();
        let page = source.clone().read(user, ReplayCursor::begin(start)).await?;
        let unfinished = || Box::new(Unfinished { user, source, cursor: page.cursor, awaited: None });
        let replay = (!page.cursor.is_done()).then(unfinished);
        Ok((Tracker { claim, written: start, pinged: None, pinged_again: None, last_ping: 0, replay }, page))
    }
}

impl Tracker {
    /// A frame goes to the socket.
    pub fn write(&mut self, frame: &Frame) {
        if let FrameClass::Stored { stream: stream @ (Stream::Private | Stream::Group), id } = frame.class {
            let written = stream.of(&mut self.written);
            *written = MessageId(id).max(*written);
        }
    }

    /// A ping goes to the socket; its payload. `ends_page`: the next page waits for its pong.
    pub fn ping(&mut self, ends_page: bool, now: Instant) -> [u8; PING_BYTES] {
        self.last_ping += 1;
        let unanswered = if self.pinged.is_none() { &mut self.pinged } else { &mut self.pinged_again };
        *unanswered = Some((self.last_ping, self.written));
        if let (true, Some(replay)) = (ends_page, &mut self.replay) {
            replay.awaited = Some((self.last_ping, now));
        }
        self.last_ping.to_be_bytes()
    }

    /// A pong has come: it proves that everything written before its ping has arrived, and so before earlier ones.
    /// Answers the read of the next page, if that is due.
    pub fn pong(&mut self, payload: &[u8]) -> Option<impl Future<Output = Result<ReplayPage, AppError>> + use<>> {
        let number = u64::from_be_bytes(payload.try_into().ok()?);
        if number > self.last_ping {
            return None;
        }
        if let Some((_, position)) = self.pinged_again.take_if(|(ping, _)| *ping <= number) {
            self.pinged = None;
            self.claim.confirm(position);
        } else if let Some((_, position)) = self.pinged.take_if(|(ping, _)| *ping <= number) {
            self.pinged = self.pinged_again.take();
            self.claim.confirm(position);
        }
        let replay = self.replay.as_mut()?;
        replay.awaited.take_if(|(ping, _)| *ping <= number)?;
        Some(replay.source.clone().read(replay.user, replay.cursor))
    }

    /// The next page goes to the queue.
    pub fn turn(&mut self, page: &ReplayPage) {
        match &mut self.replay {
            Some(_) if page.cursor.is_done() => self.replay = None,
            Some(replay) => replay.cursor = page.cursor,
            None => {}
        }
    }

    /// Whether the next page has been waiting for its pong for so long: the peer gives other signs of life, but it
    /// would never get another frame.
    pub fn is_stuck(&self, limit: Duration, now: Instant) -> bool {
        let awaited = self.replay.as_ref().and_then(|replay| replay.awaited);
        awaited.is_some_and(|(_, since)| now.duration_since(since) >= limit)
    }
}
