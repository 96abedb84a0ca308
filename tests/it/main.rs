//! Tests of the whole server from outside: over HTTP and WebSocket, on all three databases, and as a process.
//! Run them with `./scripts/test`, which starts the databases.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod commit_order;
mod friend_profiles;
mod friend_request_pages;
mod friend_requests;
mod friends;
mod order;
mod processes;
mod pulls;
mod story;
mod support;
mod window;
mod writers;
