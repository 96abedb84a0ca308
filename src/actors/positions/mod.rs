//! How far the devices of this node's sessions have confirmed what was written to them, and the writing of it through
//! the DB writer, many rows in one command (`design.md` section 7, "resume replay").
//!
//! Started once by the server, with two tasks that end with its runtime: one stores devices that are seen for the first
//! time, one writes positions that have moved. Nothing waits for the second; what is lost with the process only means
//! that more is replayed.

mod book;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use self::book::Book;
use crate::actors::db_writer::DbWriter;
use crate::domain::device_position::DevicePosition;
use crate::error::AppError;
use crate::service::Locks;
use crate::service::device_positions::{self, KnownDevice, NewDevice};

/// How often what is due is written. In between it collects, so that few commits carry much.
const TICK: Duration = Duration::from_secs(1);
/// Rows of one command.
const MAX_ROWS: usize = 500;
/// New devices of one command; a few statements for each of the logins may be needed.
const MAX_NEW: usize = 200;
/// New devices that wait before further handshakes are refused.
const MAX_WAITING: usize = 4_096;
/// How long a stop waits for a database that does not take the last positions.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// The positions of this node. Cheap to clone.
#[derive(Clone)]
pub struct Positions(Arc<Inner>);

struct Inner {
    writer: DbWriter,
    book: Mutex<Book>,
    newcomers: Mutex<Vec<Newcomer>>,
    newcomer_waits: Notify,
    /// Held while rows are written.
    writing: tokio::sync::Mutex<()>,
}

struct Newcomer {
    device: NewDevice,
    answer: oneshot::Sender<Result<Option<KnownDevice>, AppError>>,
}

/// What one session says about a device. Dropped, it says that the session has ended.
pub struct Claim {
    positions: Positions,
    row: i64,
    number: u64,
    start: DevicePosition,
}

impl Positions {
    /// Starts the tasks; needs a running runtime.
    pub fn start(writer: DbWriter) -> Positions {
        let positions = Positions(Arc::new(Inner {
            writer,
            book: Mutex::default(),
            newcomers: Mutex::default(),
            newcomer_waits: Notify::new(),
            writing: tokio::sync::Mutex::default(),
        }));
        tokio::spawn(positions.clone().remember_newcomers());
        tokio::spawn(positions.clone().write_regularly());
        positions
    }

    /// Stores a device that is seen for the first time, together with others that wait. `None` where its login has
    /// ended meanwhile.
    ///
    /// # Errors
    /// `TooManyRequests` when too many wait; whatever keeps the writer from storing it.
    pub async fn remember(&self, device: NewDevice) -> Result<Option<KnownDevice>, AppError> {
        let (answer, outcome) = oneshot::channel();
        {
            let mut newcomers = lock(&self.0.newcomers);
            if newcomers.len() >= MAX_WAITING {
                return Err(AppError::TooManyRequests);
            }
            newcomers.push(Newcomer { device, answer });
        }
        self.0.newcomer_waits.notify_one();
        outcome.await.unwrap_or(Err(AppError::Unavailable))
    }

    /// The claim of a session that begins.
    pub fn claim(&self, device: KnownDevice) -> Claim {
        let (number, start) = lock(&self.0.book).open(device.row, device.stored, device.start);
        Claim { positions: self.clone(), row: device.row, number, start }
    }

    /// Writes everything that has moved, because the server stops. Gives up when the database does not take it.
    pub async fn flush(&self) {
        lock(&self.0.book).hurry();
        let all = async {
            while self.write_some().await? > 0 {}
            Ok::<(), AppError>(())
        };
        match tokio::time::timeout(STOP_LIMIT, all).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "positions of devices are not written: more will be replayed"),
            Err(_) => tracing::warn!("positions of devices are not written in time: more will be replayed"),
        }
    }

    async fn write_regularly(self) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            loop {
                match self.write_some().await {
                    Ok(count) if count == MAX_ROWS => {}
                    Ok(_) => break,
                    Err(error) => {
                        tracing::debug!(%error, "positions of devices wait for the database");
                        break;
                    }
                }
            }
        }
    }

    /// Writes one command's worth; how many rows.
    async fn write_some(&self) -> Result<usize, AppError> {
        let _alone = self.0.writing.lock().await;
        let rows = lock(&self.0.book).take(MAX_ROWS, Instant::now());
        if rows.is_empty() {
            return Ok(0);
        }
        let command = rows.clone();
        let save = self.0.writer.run(None, "device_position.save", Locks::NONE, async move |tx| {
            device_positions::save_all(tx, &command).await
        });
        let saved = save.await;
        let mut book = lock(&self.0.book);
        match &saved {
            Ok(()) => book.written(&rows),
            Err(_) => book.put_back(&rows),
        }
        saved.map(|()| rows.len())
    }

    /// While one command is on its way the next newcomers collect.
    async fn remember_newcomers(self) {
        loop {
            self.0.newcomer_waits.notified().await;
            loop {
                let mut newcomers: Vec<Newcomer> = {
                    let mut waiting = lock(&self.0.newcomers);
                    let count = waiting.len().min(MAX_NEW);
                    waiting.drain(..count).collect()
                };
                if newcomers.is_empty() {
                    break;
                }
                // Those who have gone away need nothing.
                newcomers.retain(|newcomer| !newcomer.answer.is_closed());
                if !newcomers.is_empty() {
                    self.remember_some(newcomers).await;
                }
            }
        }
    }

    async fn remember_some(&self, newcomers: Vec<Newcomer>) {
        let devices: Vec<NewDevice> = newcomers.iter().map(|newcomer| newcomer.device.clone()).collect();
        let remember = self.0.writer.run(None, "device_position.remember", Locks::NONE, async move |tx| {
            device_positions::remember_all(tx, &devices).await
        });
        match remember.await {
            Ok(known) => {
                for (newcomer, known) in newcomers.into_iter().zip(known) {
                    let _ = newcomer.answer.send(Ok(known));
                }
            }
            Err(error) => {
                tracing::warn!(%error, devices = newcomers.len(), "new devices could not be stored");
                for newcomer in newcomers {
                    let _ = newcomer.answer.send(Err(AppError::Unavailable));
                }
            }
        }
    }
}

impl Claim {
    /// What was confirmed before this session.
    pub fn start(&self) -> DevicePosition {
        self.start
    }

    /// The peer has everything up to here.
    pub fn confirm(&self, position: DevicePosition) {
        lock(&self.positions.0.book).confirm(self.row, self.number, position, Instant::now());
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.positions.0.book).close(self.row, self.number);
    }
}

/// No code panics while it holds one of these locks: poison is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
