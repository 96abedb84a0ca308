//! Tests of the whole server from outside: over HTTP and WebSocket, on all three databases, and as a process.
//! Run them with `./scripts/test`, which starts the databases.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod accounts;
mod bad_input;
mod doors;
mod frames;
mod logins;
mod private_history;
mod private_send;
mod read_pull;
mod reads;
mod schema;
mod server_api;
mod story;
mod support;
mod typing;
