//! Metrics of the process, under the conventional names of Prometheus.

use std::time::Duration;

use super::text::{Kind, TextEncoder};

/// Writes the available metrics. The files in `/proc` wait for no disk.
pub(super) fn write(text: &mut TextEncoder, start: Duration) {
    text.family(
        "process_start_time_seconds",
        Kind::Gauge,
        "When the server was opened, in seconds since 1970.",
    );
    text.seconds(&[], start);
    if let Some(bytes) = resident_memory_bytes() {
        text.family(
            "process_resident_memory_bytes",
            Kind::Gauge,
            "Resident memory of the process.",
        );
        text.sample(&[], bytes);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        text.family(
            "process_open_fds",
            Kind::Gauge,
            "Descriptors that are open.",
        );
        // One of them is the descriptor of this listing.
        text.sample(&[], (open.count() as u64).saturating_sub(1));
    }
}

/// Returns the resident memory of the process, where the system reports it.
pub(super) fn resident_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    resident_bytes(&status)
}

/// The line reads `VmRSS:     1234 kB`.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_off_the_status() {
        let status = "Name:\traddle\nVmPeak:\t 9000 kB\nVmRSS:\t    1234 kB\n";
        assert_eq!(resident_bytes(status), Some(1234 * 1024));
        assert_eq!(resident_bytes("Name:\traddle\n"), None);
    }
}
