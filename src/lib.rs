//! Nudge: a self-hosted instant-messaging realtime server.

pub mod config;
pub mod db;
pub mod domain;
pub mod error;
pub mod protocol;
