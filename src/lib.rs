//! Nudge: a self-hosted instant-messaging realtime server.

pub mod actors;
pub mod clock;
pub mod config;
pub mod db;
pub mod domain;
pub mod error;
pub mod health;
pub mod protocol;
pub mod service;
