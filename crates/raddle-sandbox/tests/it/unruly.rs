//! Programs that resist being ended, and a way to find them: all their processes have a mark in
//! their environment.

use std::time::{Duration, Instant};

/// Timeout until no process is left.
pub const GONE_TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout until all processes have started. Only a failing test waits this long.
const STARTED_TIMEOUT: Duration = Duration::from_secs(60);

/// The variable that holds the mark.
pub const MARK: &str = "RADDLE_TEST_MARK";

/// A script for `sh -c`, and the number of its processes when all have started.
#[derive(Clone, Copy)]
pub struct UnrulyProgram {
    pub name: &'static str,
    pub script: &'static str,
    pub processes: usize,
}

pub const ALL: &[UnrulyProgram] = &[
    UnrulyProgram {
        name: "jobs in the background",
        script: "sleep 1000 & sleep 1000 & sleep 1000",
        processes: 4,
    },
    UnrulyProgram {
        name: "a double fork",
        script: "( ( sleep 1000 & ) & ); sleep 1000",
        processes: 3,
    },
    UnrulyProgram {
        name: "sessions of their own",
        script: "setsid sh -c 'setsid sleep 1000 & setsid sleep 1000 & sleep 1000' & sleep 1000",
        processes: 6,
    },
    UnrulyProgram {
        name: "deaf to signals",
        script: "trap '' TERM HUP INT QUIT; setsid sleep 1000 & while :; do sleep 1000; done",
        processes: 3,
    },
    UnrulyProgram {
        name: "stopped",
        script: "sh -c 'kill -STOP $$; :' & setsid sh -c 'kill -STOP $$; :' & kill -STOP $$; :",
        processes: 3,
    },
    UnrulyProgram {
        name: "one that starts again",
        script: "trap '' TERM; while :; do setsid sh -c 'sleep 1000; :' & wait; done",
        processes: 3,
    },
    UnrulyProgram {
        // Each exists only until it has started the next one.
        name: "some that hop from session to session",
        script: "H='[ $1 -gt 0 ] && setsid sh -c \"$H\" h $(($1-1)) & :'; export H; \
            sh -c \"$H\" h 9999; sh -c \"$H\" h 9999; sh -c \"$H\" h 9999; sleep 1000; :",
        processes: 4,
    },
    UnrulyProgram {
        name: "a bomb in one group",
        script: "b() { [ $1 -gt 0 ] && { b $(($1-1)) & b $(($1-1)) & }; sleep 1000; }; b 5",
        processes: 126,
    },
    UnrulyProgram {
        name: "a bomb of sessions",
        script: "B='[ $1 -gt 0 ] && { setsid sh -c \"$B\" b $(($1-1)) & setsid sh -c \"$B\" b $(($1-1)) & }; \
            sleep 1000; :'; export B; sh -c \"$B\" b 4; :",
        processes: 63,
    },
    UnrulyProgram {
        name: "writers of much",
        script: "yes & yes >&2 & yes; :",
        processes: 4,
    },
    UnrulyProgram {
        name: "one that closes its outputs",
        script: "exec >/dev/null 2>&1 </dev/null; sleep 1000; :",
        processes: 2,
    },
];

/// Returns the living processes with this mark.
pub fn marked(mark: &str) -> Vec<u32> {
    let variable_text = format!("{MARK}={mark}");
    let has_mark = |environ: Vec<u8>| {
        environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == variable_text.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").expect("the processes");
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ"));
            environ.is_ok_and(has_mark)
        })
        .collect()
}

/// Waits until all processes of a script have started.
pub fn wait_until_started(unruly: UnrulyProgram, mark: &str) {
    let started = Instant::now();
    while marked(mark).len() < unruly.processes {
        let count = marked(mark).len();
        assert!(
            started.elapsed() < STARTED_TIMEOUT,
            "{}: {count} of {} processes",
            unruly.name,
            unruly.processes
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until no process has the mark, and returns the time since `since`.
pub fn wait_until_gone(name: &str, mark: &str, since: Instant) -> Duration {
    loop {
        let remaining = marked(mark);
        let passed = since.elapsed();
        if remaining.is_empty() {
            assert!(passed < GONE_TIMEOUT, "{name}: gone only after {passed:?}");
            return passed;
        }
        assert!(
            passed < GONE_TIMEOUT,
            "{name}: {remaining:?} live after {passed:?}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}
