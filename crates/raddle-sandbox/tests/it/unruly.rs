//! Programs that do all they can to stay, and a way to find them: all they start has a mark in its
//! environment.

use std::time::{Duration, Instant};

/// How long it may take until nothing is left.
pub const GONE_MAX: Duration = Duration::from_secs(2);

/// How long they may take to be there. Only a failing test waits this long.
const THERE_MAX: Duration = Duration::from_secs(60);

/// The variable that holds the mark.
pub const MARK: &str = "RADDLE_TEST_MARK";

/// A script for `sh -c`, and how many processes it is when all have started.
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
        name: "one that is born again",
        script: "trap '' TERM; while :; do setsid sh -c 'sleep 1000; :' & wait; done",
        processes: 3,
    },
    UnrulyProgram {
        // Each is only there until it has made the next one.
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

/// Who has this mark and lives.
pub fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let has_mark = |environ: Vec<u8>| {
        environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes())
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

/// Waits until all processes of a script are there.
pub fn wait_until_there(unruly: UnrulyProgram, mark: &str) {
    let begun = Instant::now();
    while marked(mark).len() < unruly.processes {
        let found = marked(mark).len();
        assert!(
            begun.elapsed() < THERE_MAX,
            "{}: {found} of {} processes",
            unruly.name,
            unruly.processes
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until nobody has the mark, and says how long after `since` that was.
pub fn wait_until_gone(name: &str, mark: &str, since: Instant) -> Duration {
    loop {
        let left = marked(mark);
        let passed = since.elapsed();
        if left.is_empty() {
            assert!(passed < GONE_MAX, "{name}: gone only after {passed:?}");
            return passed;
        }
        assert!(passed < GONE_MAX, "{name}: {left:?} live after {passed:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
