//! HTTP: routes and translation between the wire and services. No SQL, no rules.

mod auth;
mod caller;
mod conversation_reads;
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
mod private_messages;
mod response;
mod routes;
mod server_api;
mod sessions;
mod sync;
mod users;
mod web;
mod ws;

pub use routes::{im_endpoints, metrics_routes, routes};

use std::net::IpAddr;
use std::sync::Arc;

use self::limits::{EventCounter, PasswordWorkers};
use crate::actors::Registry;
use crate::actors::db_reader::DbReaders;
use crate::actors::db_writer::DbWriter;
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::ids::{GroupId, UserId};
use crate::health::Health;
use crate::service::pull_window::PullWindow;

/// A pair of users is told of typing at most once in this time, milliseconds.
const TYPING_INTERVAL_MS: i64 = 1_000;

/// What handlers work with.
pub struct AppState {
    pub config: Config,
    pub clock: Clock,
    pub writer: DbWriter,
    pub readers: DbReaders,
    pub registry: Registry,
    pub health: Health,
    private_window: Arc<PullWindow>,
    group_window: Arc<PullWindow>,
    passwords: PasswordWorkers,
    failed_logins: EventCounter<(String, IpAddr)>,
    registrations: EventCounter<IpAddr>,
    typing: EventCounter<(UserId, UserId)>,
    group_typing: EventCounter<(UserId, GroupId)>,
}

impl AppState {
    pub fn new(
        config: Config,
        clock: Clock,
        writer: DbWriter,
        readers: DbReaders,
        registry: Registry,
        health: Health,
    ) -> AppState {
        let window_ms = i64::try_from(config.auth.failure_window_s).unwrap_or(i64::MAX).saturating_mul(1_000);
        AppState {
            config,
            clock,
            writer,
            readers,
            registry,
            health,
            private_window: Arc::new(PullWindow::private()),
            group_window: Arc::new(PullWindow::group()),
            passwords: PasswordWorkers::default(),
            failed_logins: EventCounter::new(window_ms),
            registrations: EventCounter::new(window_ms),
            typing: EventCounter::new(TYPING_INTERVAL_MS),
            group_typing: EventCounter::new(TYPING_INTERVAL_MS),
        }
    }
}
