//! Nudge: a self-hosted instant-messaging realtime server.

pub mod client;
pub mod config;
pub mod domain;
pub mod protocol;
