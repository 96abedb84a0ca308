//! This process and the machine: descriptors, processor time, memory. Memory and descriptors are read from `/proc`, so
//! on Linux only; elsewhere they are unknown.

use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Raises the soft limit of file descriptors to the hard one; the limit then. `None` is unlimited.
pub fn raise_descriptor_limit() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where that is forbidden the old limit stays.
    let _ = setrlimit(Resource::Nofile, limit);
    descriptor_limit()
}

/// How many descriptors this process may have. `None` is unlimited.
pub fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Processor time of all threads since the start of the process.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanoseconds.unwrap_or_default())
}

/// Memory of this process that is in RAM, bytes.
pub fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    kibibytes.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kibibytes| kibibytes * 1_024)
}

/// Open descriptors of this process. Takes milliseconds where there are thousands.
pub fn open_descriptors() -> Option<u64> {
    // One of them is the folder itself.
    let count = std::fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1);
    u64::try_from(count).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_itself() {
        let before = cpu_time();
        let file = std::fs::File::open("/proc/self/status");
        if file.is_ok() {
            assert!(resident_memory().unwrap() > 1 << 20);
            assert!(open_descriptors().unwrap() > 2);
        }
        assert!(raise_descriptor_limit() == descriptor_limit());
        assert!(cpu_time() >= before);
    }
}
