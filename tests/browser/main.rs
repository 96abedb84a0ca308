//! The built-in web chat and its SDK in a real browser: Chromium, driven through chromedriver. Run them with
//! `./scripts/test`, which installs both and fetches the accessibility checker.
//!
//! They test the client. What the server promises it is tested elsewhere, on every database; here SQLite is enough.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod accessibility;
mod chat;
mod connection;
mod groups;
mod keyboard;
mod screenshots;
mod sdk;
mod support;
mod tabs;
