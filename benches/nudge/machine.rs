//! What the kernel says about processes: CPU time, memory, where they run.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;

/// CPU time of all threads of a process so far, user and system.
pub fn cpu(process: u32) -> anyhow::Result<Duration> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        // One that has just ended is missed.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        nanoseconds += text.split(' ').next().unwrap_or_default().parse::<u64>().unwrap_or_default();
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Resident memory of a process, KiB.
pub fn rss_kb(process: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// The load average of the last minute.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Keeps every thread of a process on one core; false where that cannot be done.
pub fn pin(process: u32, core: usize) -> bool {
    let mut taskset = Command::new("taskset");
    taskset.args(["-acp", &core.to_string(), &process.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    taskset.status().is_ok_and(|status| status.success())
}
