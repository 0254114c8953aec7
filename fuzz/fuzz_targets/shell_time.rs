//! A repetitive line of 64 KiB is parsed within the work budget and the time limit.
//!
//! Time is checked only where `RADDLE_FUZZ_MS` sets the limit in milliseconds, so that replaying
//! the seeds does not depend on the load of a machine. The limit applies to the CPU time of this
//! thread.
#![cfg_attr(fuzzing, no_main)]

use std::sync::LazyLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[path = "../../crates/raddle-tools/tests/it/shell/property.rs"]
#[allow(dead_code)]
mod property;

static LIMIT: LazyLock<Option<Duration>> = LazyLock::new(|| {
    let text = std::env::var("RADDLE_FUZZ_MS").ok()?;
    let milliseconds = text
        .parse()
        .expect("RADDLE_FUZZ_MS is a number of milliseconds");
    Some(Duration::from_millis(milliseconds))
});

fuzz::target!(|input: &[u8]| {
    let line = property::repeated(input);
    let mut fastest = Duration::MAX;
    // A page fault or another program may disturb one attempt, but hardly three.
    for _ in 0..3 {
        let start = now();
        property::within_bounds(&line);
        fastest = fastest.min(now().saturating_sub(start));
        match *LIMIT {
            Some(limit) if fastest > limit => {}
            _ => return,
        }
    }
    panic!("a line of {} bytes takes {fastest:?}", line.len());
});

fn now() -> Duration {
    let it = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(it.tv_sec.unsigned_abs(), it.tv_nsec.unsigned_abs() as u32)
}
