//! A repetitive line of 64 KiB is parsed within the work budget and the time limit.
//!
//! Time is checked only where `RADDLE_FUZZ_MS` sets the limit in milliseconds, so that replaying
//! the seeds does not depend on the load of a machine. The limit applies to the CPU time of this
//! thread. Even that grows where other programs share a core or its cache, so a line fails only if
//! it also takes many times as long as plain words of the same length do at that moment.
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

/// How much longer than plain words a line may take, where the limit is exceeded.
const RATIO_MAX: u32 = 10;

/// Comparisons with plain words. Another program may disturb some of them, but hardly all.
const ROUNDS: usize = 10;

fuzz::target!(|input: &[u8]| {
    let line = property::repeated(input);
    let Some(limit) = *LIMIT else {
        property::within_bounds(&line);
        return;
    };
    let mut times = (Duration::ZERO, Duration::ZERO);
    for _ in 0..ROUNDS {
        let time = time(&line);
        if time <= limit {
            return;
        }
        let words = self::time(&property::repeated(b"\0word "));
        if time <= words * RATIO_MAX {
            return;
        }
        times = (time, words);
    }
    let (time, words) = times;
    panic!(
        "a line of {} bytes takes {time:?}, and one of plain words {words:?}",
        line.len()
    );
});

/// Returns the CPU time for parsing a line.
fn time(line: &str) -> Duration {
    let start = now();
    property::within_bounds(line);
    now().saturating_sub(start)
}

fn now() -> Duration {
    let it = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(it.tv_sec.unsigned_abs(), it.tv_nsec.unsigned_abs() as u32)
}
