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

/// How long a port of a closed connection stays taken, in seconds (TIME-WAIT on Linux).
const TIME_WAIT: f64 = 60.0;

/// Local ports that connections to one address may use; `None` where it cannot be told.
pub(crate) fn ephemeral_ports() -> Option<u64> {
    read_ports(&std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?)
}

fn read_ports(range: &str) -> Option<u64> {
    let mut ends = range.split_whitespace().map(str::parse::<u64>);
    let (low, high) = (ends.next()?.ok()?, ends.next()?.ok()?);
    (high >= low).then(|| high - low + 1)
}

/// A warning before a run that opens so many connections a second, if it may use up this machine's ports.
pub(crate) fn port_warning(connections_per_second: f64, ports: u64) -> Option<String> {
    let taken = connections_per_second * TIME_WAIT;
    (taken > ports as f64).then(|| {
        format!(
            "{connections_per_second:.0} new connections a second leave up to {taken:.0} ports waiting, and this machine has {ports} \
             (net.ipv4.ip_local_port_range): some may find none; a longer --reuse, or a lower rate, needs fewer."
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_warned_of_when_they_may_run_out() {
        assert_eq!(read_ports("32768\t60999\n"), Some(28_232));
        assert_eq!(read_ports("nonsense"), None);
        assert_eq!(port_warning(400.0, 28_232), None);
        assert!(port_warning(500.0, 28_232).unwrap().contains("30000 ports"));
    }
}
