//! Tests of the whole server from outside: over HTTP and WebSocket, on all three databases, and as a process.
//! Run them with `./scripts/test`, which starts the databases.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod accounts;
mod bad_input;
mod batch_errors;
mod commit_and_push;
mod commit_order;
mod database_outage;
mod doors;
mod durability;
mod frames;
mod friend_profiles;
mod friend_request_pages;
mod friend_requests;
mod friends;
mod full_disk;
mod group_forms;
mod group_lists;
mod group_members;
mod group_permissions;
mod group_races;
mod group_requests;
mod group_roles;
mod group_story;
mod groups;
mod logins;
mod lost_commit;
mod order;
mod private_history;
mod private_send;
mod processes;
mod pulls;
mod read_pull;
mod reads;
mod recall;
mod repeats;
mod schema;
mod server_api;
mod story;
mod support;
mod typing;
mod window;
mod writer_limits;
mod writers;
