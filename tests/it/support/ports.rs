//! Ports for server processes.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use rand::Rng;

/// Below the kernel's range for outgoing connections, so that a server that was stopped finds its port free again.
/// `scripts/databases` takes the ports below these.
const PORTS: std::ops::Range<u16> = 26000..32000;

/// A port of 127.0.0.1 that no other test of this checkout takes as long as this value exists, though nothing listens.
pub struct ReservedPort {
    pub number: u16,
    /// Locked; the kernel unlocks it when this process ends, however it ends.
    _lock: File,
}

impl ReservedPort {
    pub fn find() -> anyhow::Result<ReservedPort> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ports");
        std::fs::create_dir_all(&folder)?;
        for _ in 0..1000 {
            let number = rand::rng().random_range(PORTS);
            let lock = File::create(folder.join(number.to_string()))?;
            if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Ok(ReservedPort { number, _lock: lock });
            }
        }
        anyhow::bail!("no free port in {PORTS:?}")
    }
}
