//! Evaluates the trace of strace: programs and connections, inside and outside the sandbox.

use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Expected programs and connections. All others are failures.
pub struct ExpectedTrace<'a> {
    /// The program under test, which also runs inside the sandbox.
    pub raddle: &'a str,
    /// The port of the model.
    pub model: u16,
    /// The folder with the workspace in it. No program from there may start.
    pub root: &'a str,
    /// Whether git may start programs that the repository names, inside the sandbox.
    pub by_git: bool,
    /// The folder of the workspace that is first in `PATH`. Names are tried there, and must not be
    /// found.
    pub first: Option<&'a str>,
}

/// Programs of the system that the commands of the session use.
const EXPECTED_PROGRAMS: &[&str] = &["bash", "sh", "dash", "ls", "cat", "head", "git"];

/// Program that the system's profile starts in a login shell, to get the user id.
const BY_PROFILE: &str = "id";

/// Arguments of the login shell that is asked for its `PATH`.
const LOGIN: &str = ", [\"/bin/bash\", \"-lc\", \"printf ";

/// The server's own program as the keeper, which stays when the server is killed.
const KEEPER: &str = "\"/proc/self/exe\", [\"raddle-keeper\", \"keep\"]";

/// Path of the server's own program inside the sandbox.
const SANDBOX_PATH: &str = "/run/raddle-sandbox";

/// Socket that the C library asks for user names; the sandbox blocks it.
const USERS: &str = "/var/run/nscd/socket";

#[derive(Debug, Default)]
pub struct TraceReport {
    pub started: usize,
    pub started_inside: usize,
    pub connected: usize,
    /// Programs that git started inside the sandbox because the repository names them.
    pub by_git: usize,
    pub wrongs: Vec<String>,
}

/// Evaluates the lines of strace.
pub fn judge(text: &str, expected: &ExpectedTrace<'_>) -> TraceReport {
    let whole = complete_lines(text);
    let lines: Vec<TraceLine<'_>> = whole.iter().filter_map(|it| TraceLine::parse(it)).collect();
    let sandboxed = sandboxed_pids(&lines);
    let login = login_pids(&lines);
    let mut report = TraceReport::default();
    for line in &lines {
        let inside = sandboxed.contains(line.pid);
        match line.call {
            "execve" | "execveat" if login.contains(line.pid) => {
                by_login(line, expected, &mut report)
            }
            "execve" | "execveat" => start(line, inside, expected, &mut report),
            "connect" if login.contains(line.pid) && line.rest.contains(USERS) => {}
            "connect" => connect(line, inside, expected, &mut report),
            _ => {}
        }
    }
    report
}

fn start(
    line: &TraceLine<'_>,
    inside: bool,
    expected: &ExpectedTrace<'_>,
    report: &mut TraceReport,
) {
    if line.is_cut() && line.is_unreadable() {
        return;
    }
    let path = line.rest.split('"').nth(1).unwrap_or_default();
    // A name is tried in each folder of `PATH`, so a failure is normal.
    let is_missing = line.rest.contains("= -1 ENOENT");
    let program = Path::new(path);
    let name = program
        .file_name()
        .and_then(|it| it.to_str())
        .unwrap_or_default();
    let is_systems = ["/usr/", "/bin/", "/sbin/", "/lib/"]
        .iter()
        .any(|it| path.starts_with(it));
    let is_ours = path == expected.raddle || path == SANDBOX_PATH;
    // The keeper ends processes that a killed server leaves, and has no environment.
    let is_keeper = line.rest.contains(KEEPER);
    let is_of_workspace = !is_ours && (path.starts_with(expected.root) || !path.starts_with('/'));
    let is_git = path.contains("/git-core/");
    report.started += 1;
    report.started_inside += usize::from(inside);
    let is_lookup = expected.first.is_some_and(|it| path.starts_with(it));
    let is_expected = match (is_ours, inside) {
        _ if is_missing && (!is_of_workspace || is_lookup) => true,
        (true, _) => true,
        // Bubblewrap creates the sandbox, so it counts as inside.
        _ if path == "/usr/bin/bwrap" => true,
        (_, false) => is_keeper,
        (_, true) if is_of_workspace => {
            report.by_git += 1;
            expected.by_git
        }
        (_, true) => {
            is_git
                || is_systems
                    && (EXPECTED_PROGRAMS.contains(&name) || name == BY_PROFILE || expected.by_git)
        }
    };
    if !is_expected {
        let location = if inside {
            "inside the sandbox"
        } else {
            "without the sandbox"
        };
        report
            .wrongs
            .push(format!("started {location}: {}", line.rest));
    }
}

/// Checks the login shell that is asked for its `PATH`, and the programs that the system's profile
/// starts in it. None may come from the workspace.
fn by_login(line: &TraceLine<'_>, expected: &ExpectedTrace<'_>, report: &mut TraceReport) {
    let path = line.rest.split('"').nth(1).unwrap_or_default();
    let name = Path::new(path).file_name().and_then(|it| it.to_str());
    let is_known = [Some("bash"), Some(BY_PROFILE)].contains(&name)
        || path == expected.raddle
        || line.rest.contains(KEEPER);
    report.started += 1;
    if path.starts_with(expected.root) && path != expected.raddle || !is_known {
        report
            .wrongs
            .push(format!("started by the login shell: {}", line.rest));
    }
}

fn connect(
    line: &TraceLine<'_>,
    inside: bool,
    expected: &ExpectedTrace<'_>,
    report: &mut TraceReport,
) {
    report.connected += 1;
    let model = format!("sin_port=htons({})", expected.model);
    let is_model = line.rest.contains(&model) && line.rest.contains("\"127.0.0.1\"");
    let is_expected = if inside {
        // A program that git starts may try, without success; the host checks that itself.
        line.rest.contains(USERS) || expected.by_git
    } else {
        is_model
    };
    if !is_expected {
        report.wrongs.push(format!("called: {}", line.rest));
    }
}

/// Joins the interrupted lines of strace, so that each line is a complete call at its end.
fn complete_lines(text: &str) -> Vec<String> {
    let mut open: HashMap<&str, &str> = HashMap::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        let Some((pid, rest)) = line.split_once(' ') else {
            continue;
        };
        if let Some(first) = line.strip_suffix("<unfinished ...>") {
            open.insert(pid, first);
        } else if rest.trim_start().starts_with("<... ") {
            let second = rest.split_once("resumed>").map_or("", |(_, it)| it);
            let first = open.remove(pid).unwrap_or_default();
            lines.push(format!("{first}{second}"));
        } else {
            lines.push(line.to_owned());
        }
    }
    // A call without an end may have happened all the same.
    lines.extend(open.into_values().map(str::to_owned));
    lines
}

/// A line of the form `PID call(words) = answer`.
struct TraceLine<'a> {
    pid: &'a str,
    call: &'a str,
    rest: &'a str,
}

impl<'a> TraceLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (pid, rest) = line.split_once(' ')?;
        let rest = rest.trim_start();
        let (call, _) = rest.split_once('(')?;
        Some(Self { pid, call, rest })
    }

    /// Whether the calling process was killed before the call returned.
    fn is_cut(&self) -> bool {
        !self.rest.contains(" = ") || self.rest.contains(" = ?")
    }

    /// Whether strace could not read the arguments: the caller was already dead, so the call had no
    /// effect.
    fn is_unreadable(&self) -> bool {
        !self.rest.contains('"')
    }

    fn is_birth(&self) -> bool {
        matches!(self.call, "clone" | "clone3" | "fork" | "vfork")
    }

    /// Returns the process that it created, as the host numbers it.
    fn child(&self) -> Option<&'a str> {
        if !self.is_birth() {
            return None;
        }
        let (_, answer) = self.rest.rsplit_once(" = ")?;
        let number = match answer.split_once("/* ") {
            Some((_, translated)) => translated,
            None => answer,
        };
        let number = number.split(' ').next()?;
        number
            .bytes()
            .all(|it| it.is_ascii_digit())
            .then_some(number)
    }
}

/// Returns the login shell that is asked for its `PATH`, and its descendants.
fn login_pids<'a>(lines: &[TraceLine<'a>]) -> HashSet<&'a str> {
    let mut children: HashMap<&str, Vec<&'a str>> = HashMap::new();
    for line in lines {
        if let Some(child) = line.child() {
            children.entry(line.pid).or_default().push(child);
        }
    }
    let shells = lines.iter().filter(|it| {
        it.call.starts_with("execve") && it.rest.contains(LOGIN) && !it.rest.contains("= -1 ")
    });
    let mut pids = HashSet::new();
    add_descendants(shells.map(|it| it.pid).collect(), &children, &mut pids);
    pids
}

/// Returns the processes of bubblewrap, and their descendants.
fn sandboxed_pids<'a>(lines: &[TraceLine<'a>]) -> HashSet<&'a str> {
    let mut children: HashMap<&str, Vec<&'a str>> = HashMap::new();
    let mut roots = Vec::new();
    for line in lines {
        if let Some(child) = line.child() {
            children.entry(line.pid).or_default().push(child);
        }
        let is_start = line.call.starts_with("execve") && !line.rest.contains("= -1 ");
        if is_start && line.rest.contains("/bwrap\", ") {
            roots.push(line.pid);
        }
    }
    let mut pids = HashSet::new();
    add_descendants(roots, &children, &mut pids);
    // A process that was killed during a fork does not name its child. If all such processes are
    // inside, so are the processes without a known parent.
    let cut: Vec<&TraceLine<'_>> = lines
        .iter()
        .filter(|it| it.is_birth() && it.is_cut())
        .collect();
    if !cut.is_empty() && cut.iter().all(|it| pids.contains(it.pid)) {
        let known: HashSet<&str> = children.values().flatten().copied().collect();
        let first = lines.first().map(|it| it.pid);
        let orphans = lines.iter().map(|it| it.pid);
        let orphans = orphans.filter(|it| Some(*it) != first && !known.contains(it));
        add_descendants(orphans.collect(), &children, &mut pids);
    }
    pids
}

/// Adds these processes and their descendants.
fn add_descendants<'a>(
    mut pending: Vec<&'a str>,
    children: &HashMap<&str, Vec<&'a str>>,
    pids: &mut HashSet<&'a str>,
) {
    while let Some(pid) = pending.pop() {
        if pids.insert(pid) {
            pending.extend(children.get(pid).into_iter().flatten());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: ExpectedTrace<'_> = ExpectedTrace {
        raddle: "/opt/raddle",
        model: 4010,
        root: "/var/tmp/ground",
        by_git: false,
        first: None,
    };

    /// The trace of a server that runs `ls` inside the sandbox.
    const WELL: &str = "\
10 execve(\"/opt/raddle\", [\"raddle\", \"app-server\"], 0x7 /* 9 vars */) = 0
10 connect(9, {sa_family=AF_INET, sin_port=htons(4010), sin_addr=inet_addr(\"127.0.0.1\")}, 16) = 0
10 clone3({flags=CLONE_VFORK} <unfinished ...>
11 execve(\"/usr/bin/bwrap\", [\"bwrap\"], 0x7 /* 3 vars */ <unfinished ...>
10 <... clone3 resumed>) = 11
11 <... execve resumed>) = 0
11 clone(child_stack=NULL, flags=CLONE_NEWPID) = 12
12 clone(child_stack=NULL) = 3 /* 13 in strace's PID NS */
13 execve(\"/run/raddle-sandbox\", [\"raddle\"], 0x7) = 0
13 execve(\"/usr/bin/ls\", [\"ls\"], 0x7) = 0
13 connect(3, {sa_family=AF_UNIX, sun_path=\"/var/run/nscd/socket\"}, 110) = -1 EPERM
";

    fn wrongs(line: &str) -> usize {
        judge(&format!("{WELL}{line}\n"), &EXPECTED).wrongs.len()
    }

    #[test]
    fn expected_programs_are_accepted() {
        let report = judge(WELL, &EXPECTED);
        assert_eq!(report.wrongs, [""; 0]);
        assert_eq!(
            (report.started, report.started_inside, report.connected),
            (4, 3, 2)
        );
    }

    /// The login shell is recognised by its arguments, and so are the programs of the system's
    /// profile in it.
    #[test]
    fn the_login_shell_is_expected_and_starts_nothing_of_the_workspace() {
        let login = "10 clone(child_stack=NULL) = 20\n\
                     20 execve(\"/bin/bash\", [\"/bin/bash\", \"-lc\", \"printf '%s'\"], 0x7) = 0\n\
                     20 clone(child_stack=NULL) = 21\n";
        for (line, expected) in [
            ("21 execve(\"/usr/bin/id\", [\"id\"], 0x7) = 0", 0),
            ("21 execve(\"/usr/bin/curl\", [\"curl\"], 0x7) = 0", 1),
            (
                "21 execve(\"/var/tmp/ground/workspace/id\", [\"id\"], 0x7) = 0",
                1,
            ),
            (
                "10 execve(\"/bin/bash\", [\"bash\", \"-lc\", \"ls\"], 0x7) = 0",
                1,
            ),
        ] {
            assert_eq!(wrongs(&format!("{login}{line}")), expected, "{line}");
        }
    }

    #[test]
    fn other_programs_and_connections_are_rejected() {
        for line in [
            "10 execve(\"/usr/bin/git\", [\"git\"], 0x7) = 0",
            "10 execve(\"/var/tmp/ground/workspace/git\", [\"git\"], 0x7) = 0",
            "10 execve(\"git\", [\"git\"], 0x7) = -1 ENOENT (No such file or directory)",
            "13 execve(\"/var/tmp/ground/workspace/evil.sh\", [\"x\"], 0x7) = 0",
            "13 execve(\"./evil.sh\", [\"x\"], 0x7) = 0",
            "13 execve(\"/usr/bin/curl\", [\"curl\"], 0x7) = 0",
            "10 connect(9, {sa_family=AF_INET, sin_port=htons(4011), sin_addr=inet_addr(\"127.0.0.1\")}, 16) = 0",
            "10 connect(9, {sa_family=AF_INET, sin_port=htons(4010), sin_addr=inet_addr(\"10.0.0.1\")}, 16) = 0",
            "10 connect(9, {sa_family=AF_UNIX, sun_path=\"/var/run/nscd/socket\"}, 110) = 0",
            "13 connect(9, {sa_family=AF_INET, sin_port=htons(4010), sin_addr=inet_addr(\"127.0.0.1\")}, 16) = 0",
        ] {
            assert_eq!(wrongs(line), 1, "{line}");
        }
        assert_eq!(
            wrongs(
                "13 execve(\"/usr/local/bin/ls\", [\"ls\"], 0x7) = -1 ENOENT (No such file or directory)"
            ),
            0
        );
    }

    #[test]
    fn processes_killed_at_start_are_judged_by_their_parent() {
        let of = |parent: &str, end: &str, start: &str| {
            wrongs(&format!(
                "{parent} clone(child_stack=NULL, flags=SIGCHLD{end}\n14 execve({start} <unfinished ...>"
            ))
        };
        let (unread, ls) = ("0x55e9, 0x55e8, 0x55e7", "\"/usr/bin/ls\", [\"ls\"], 0x7");
        for end in [" <unfinished ...>", ") = ?"] {
            assert_eq!(of("13", end, unread), 0);
            assert_eq!(of("13", end, ls), 0);
            assert_eq!(of("13", end, "\"/usr/bin/curl\", [\"curl\"], 0x7"), 1);
            assert_eq!(of("10", end, ls), 1);
        }
        // No process was killed, so no fork can be missing.
        assert_eq!(wrongs(&format!("14 execve({ls}) = 0")), 1);
        assert_eq!(wrongs("10 execve(0x55e9, 0x55e8, 0x55e7) = 0"), 1);
    }
}
