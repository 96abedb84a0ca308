//! Nudge: a self-hosted instant-messaging realtime server.
//!
//! A message or a state change is born in a database transaction; every online device of every receiver hears of it
//! over WebSocket once it is committed, and whoever missed that finds it by an incremental pull. **The socket is only a
//! nudge; the tables are the authority.**
//!
//! The way of a request, and which module may know which (`tests/architecture.rs` checks the arrows):
//!
//! ```text
//! http ──► service ──► domain      http      routes and translation
//!   │         └──────► db          service   the verbs, over a transaction
//!   └──► actors ──► service        domain    rules without I/O
//!           └────► protocol        db        every SQL statement, three databases
//!                                  actors    DB writer and readers, registry, devices, sessions
//!                                  protocol  wire types
//!                                  client    a Rust client for tests, load and others
//!                                  storage   the bytes of uploaded files: a folder, or S3
//!                                  load      the load simulator, over client
//! ```

pub mod actors;
pub mod admin;
pub mod client;
pub mod clock;
pub mod config;
pub mod db;
pub mod domain;
pub mod error;
pub mod health;
pub mod http;
pub mod load;
pub mod process;
pub mod protocol;
pub mod server;
pub mod service;
pub mod shutdown;
pub mod storage;
pub mod telemetry;
