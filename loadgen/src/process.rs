//! What this process uses and may use of the machine.

use std::time::Duration;

/// CPU time of this process so far; `None` where it cannot be told.
pub(crate) fn process_cpu() -> Option<Duration> {
    #[cfg(unix)]
    {
        cpu_clock(rustix::time::ClockId::ProcessCPUTime)
    }
    #[cfg(not(unix))]
    {
        None
    }
}

/// CPU time of the calling thread so far; `None` where it cannot be told.
pub(crate) fn thread_cpu() -> Option<Duration> {
    #[cfg(unix)]
    {
        cpu_clock(rustix::time::ClockId::ThreadCPUTime)
    }
    #[cfg(not(unix))]
    {
        None
    }
}

#[cfg(unix)]
fn cpu_clock(id: rustix::time::ClockId) -> Option<Duration> {
    let time = rustix::time::clock_gettime(id);
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

/// Cores this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Raises the soft limit of open files as far as needed and allowed, and gives the limit then in force; `None` where
/// there is none or it cannot be told.
pub(crate) fn raise_descriptor_limit(wanted: u64) -> Option<u64> {
    let (soft, hard) = rlimit::Resource::NOFILE.get().ok()?;
    if soft >= wanted {
        return Some(soft);
    }
    let target = wanted.min(hard);
    match rlimit::Resource::NOFILE.set(target, hard) {
        Ok(()) => Some(target),
        Err(_) => Some(soft),
    }
}

/// How long a port stays taken after the end that closed first (RFC 9293, section 3.6.1; what Linux makes of it).
pub(crate) const TIME_WAIT: Duration = Duration::from_secs(60);

/// Ports that connections of this machine are given; `None` where it cannot be told.
pub(crate) fn local_ports() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut bounds = text.split_whitespace().map(str::parse::<u64>);
    let (low, high) = (bounds.next()?.ok()?, bounds.next()?.ok()?);
    (low..=high).size_hint().1.map(|count| count as u64)
}
