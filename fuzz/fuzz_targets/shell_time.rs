//! A line of 64 KiB of something that repeats is read within the budget of work, and soon.
//!
//! Time is only looked at where `RADDLE_FUZZ_MS` says how many milliseconds a line may take, so that nothing
//! that replays the seeds depends on the load of a machine. It is the processor's time of this thread.
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
    // A page fault or a neighbour may disturb one try, hardly three.
    for _ in 0..3 {
        let began = now();
        property::within_bounds(&line);
        fastest = fastest.min(now().saturating_sub(began));
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
