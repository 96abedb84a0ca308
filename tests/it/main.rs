//! Tests of the whole server from outside: over HTTP and WebSocket, on all three databases, and as a process.
//! Run them with `./scripts/test`, which starts the databases.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod batch_errors;
mod commit_and_push;
mod commit_order;
mod convergence;
mod database_outage;
mod durability;
mod friend_profiles;
mod friend_request_pages;
mod friend_requests;
mod friends;
mod full_disk;
mod group_story;
mod lost_commit;
mod order;
mod processes;
mod pulls;
mod recall;
mod repeats;
mod story;
mod support;
mod who_may_see;
mod window;
mod writer_limits;
mod writers;
