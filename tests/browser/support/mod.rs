//! What the browser tests stand on: a server as a process, people, and browsers.

pub mod browser;
pub mod chromedriver;
pub mod people;
#[path = "../../it/support/ports.rs"]
#[allow(dead_code, reason = "shared with the other tests, which use more of it")]
pub mod ports;
#[path = "../../it/support/process.rs"]
#[allow(dead_code, reason = "shared with the other tests, which use more of it")]
pub mod process;

use std::time::Duration;

/// How long a test waits for what must happen.
pub const PATIENCE: Duration = Duration::from_secs(60);
