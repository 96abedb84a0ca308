//! HTTP: routes and translation between the wire and services. No SQL, no rules.

mod auth;
mod caller;
mod conversation_reads;
mod file_answers;
mod files;
mod friend_requests;
mod friends;
mod group_members;
mod group_messages;
mod group_requests;
mod groups;
mod health;
mod input;
mod limits;
mod lookups;
mod manager;
mod permission;
mod private_messages;
mod response;
mod routes;
mod server_api;
mod sessions;
mod sync;
mod users;
mod web;
mod words;
mod ws;

pub use routes::{im_endpoints, metrics_routes, routes};

use std::net::IpAddr;
use std::sync::Arc;

use self::files::Uploads;
use self::limits::{EventCounter, PasswordWorkers};
use self::words::SensitiveWords;
use crate::actors::db_reader::DbReaders;
use crate::actors::db_writer::DbWriter;
use crate::actors::{Positions, Registry, Replays};
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::ids::{GroupId, UserId};
use crate::health::Health;
use crate::service::pull_window::PullWindow;
use crate::storage::FileStore;

/// A pair of users is told of typing at most once in this time, milliseconds.
const TYPING_INTERVAL_MS: i64 = 1_000;

/// What handlers work with.
pub struct AppState {
    pub config: Config,
    pub clock: Clock,
    pub writer: DbWriter,
    pub readers: DbReaders,
    /// For what operators look through.
    pub manager_readers: DbReaders,
    pub registry: Registry,
    pub replays: Replays,
    pub health: Health,
    uploads: Uploads,
    private_window: Arc<PullWindow>,
    group_window: Arc<PullWindow>,
    words: SensitiveWords,
    passwords: PasswordWorkers,
    failed_logins: EventCounter<(String, IpAddr)>,
    registrations: EventCounter<IpAddr>,
    typing: EventCounter<(UserId, UserId)>,
    group_typing: EventCounter<(UserId, GroupId)>,
}

/// The running parts of a server.
pub struct Parts {
    pub clock: Clock,
    pub writer: DbWriter,
    pub readers: DbReaders,
    pub manager_readers: DbReaders,
    pub registry: Registry,
    pub health: Health,
    pub files: FileStore,
}

impl AppState {
    /// Starts the tasks that write the positions of devices: needs a running runtime.
    pub fn new(config: Config, parts: Parts) -> AppState {
        let Parts { clock, writer, readers, manager_readers, registry, health, files } = parts;
        let (private_window, group_window) = (Arc::new(PullWindow::private()), Arc::new(PullWindow::group()));
        let replays = Replays::new(
            Positions::start(writer.clone()),
            readers.clone(),
            clock.clone(),
            config.message.clone(),
            (private_window.clone(), group_window.clone()),
        );
        let window_ms = i64::try_from(config.auth.failure_window_s).unwrap_or(i64::MAX).saturating_mul(1_000);
        let uploads = Uploads::new(files, config.files.max_uploads);
        AppState {
            config,
            clock,
            writer,
            readers,
            manager_readers,
            registry,
            replays,
            health,
            uploads,
            private_window,
            group_window,
            words: SensitiveWords::default(),
            passwords: PasswordWorkers::default(),
            failed_logins: EventCounter::new(window_ms),
            registrations: EventCounter::new(window_ms),
            typing: EventCounter::new(TYPING_INTERVAL_MS),
            group_typing: EventCounter::new(TYPING_INTERVAL_MS),
        }
    }

    /// Minutes east of UTC of the zone in which operators see and write times.
    fn utc_offset(&self) -> i64 {
        i64::from(self.config.manager.utc_offset_minutes)
    }
}
