//! What strace saw: which programs were started, who was called, and which of it inside the fence.

use std::collections::{HashMap, HashSet};
use std::path::Path;

/// What is expected. The rest is not.
pub struct ExpectedTrace<'a> {
    /// The program under test, which is also the fence's inner half.
    pub raddle: &'a str,
    /// The port of the model.
    pub model: u16,
    /// The folder with the workspace in it. Nothing from there is started.
    pub root: &'a str,
    /// Whether git may start what the repository names, inside the fence.
    pub by_git: bool,
    /// The folder of the workspace that `PATH` begins with. Names are tried there, and must not be found.
    pub first: Option<&'a str>,
}

/// Programs of the system that the commands of the session are made of.
const EXPECTED_PROGRAMS: &[&str] = &["bash", "sh", "dash", "ls", "cat", "head", "git"];

/// What the system's profile starts in a login shell, to see who it is.
const BY_PROFILE: &str = "id";

/// What only the login shell is told that is asked for its `PATH`.
const LOGIN: &str = ", [\"/bin/bash\", \"-lc\", \"printf ";

/// Our own program as the one that stays when the server is killed.
const KEEPER: &str = "\"/proc/self/exe\", [\"raddle-keeper\", \"keep\"]";

/// Where our own program is inside the fence.
const SANDBOX_PATH: &str = "/run/raddle-fence";

/// Asked for users by the C library of programs that show owners; nobody is reached, for the fence stops it.
const USERS: &str = "/var/run/nscd/socket";

#[derive(Debug, Default)]
pub struct TraceReport {
    pub started: usize,
    pub started_inside: usize,
    pub connected: usize,
    /// What git started inside the fence because the repository says so.
    pub by_git: usize,
    pub wrongs: Vec<String>,
}

/// Judges the lines that strace wrote.
pub fn judge(text: &str, expected: &ExpectedTrace<'_>) -> TraceReport {
    let whole = whole(text);
    let lines: Vec<TraceLine<'_>> = whole.iter().filter_map(|it| TraceLine::parse(it)).collect();
    let fenced = fenced(&lines);
    let login = login(&lines);
    let mut seen = TraceReport::default();
    for line in &lines {
        let inside = fenced.contains(line.pid);
        match line.call {
            "execve" | "execveat" if login.contains(line.pid) => {
                by_login(line, expected, &mut seen)
            }
            "execve" | "execveat" => start(line, inside, expected, &mut seen),
            "connect" if login.contains(line.pid) && line.rest.contains(USERS) => {}
            "connect" => connect(line, inside, expected, &mut seen),
            _ => {}
        }
    }
    seen
}

fn start(line: &TraceLine<'_>, inside: bool, expected: &ExpectedTrace<'_>, seen: &mut TraceReport) {
    if line.is_cut() && line.is_unreadable() {
        return;
    }
    let path = line.rest.split('"').nth(1).unwrap_or_default();
    // A name that is tried in folder after folder is there in one of them.
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
    // It ends what a killed server leaves behind, and is started with no environment.
    let is_keeper = line.rest.contains(KEEPER);
    let is_of_workspace = !is_ours && (path.starts_with(expected.root) || !path.starts_with('/'));
    let is_git = path.contains("/git-core/");
    seen.started += 1;
    seen.started_inside += usize::from(inside);
    let is_tried = expected.first.is_some_and(|it| path.starts_with(it));
    let well = match (is_ours, inside) {
        _ if is_missing && (!is_of_workspace || is_tried) => true,
        (true, _) => true,
        // It is what makes the fence, so it counts as inside.
        _ if path == "/usr/bin/bwrap" => true,
        (_, false) => is_keeper,
        (_, true) if is_of_workspace => {
            seen.by_git += 1;
            expected.by_git
        }
        (_, true) => {
            is_git
                || is_systems
                    && (EXPECTED_PROGRAMS.contains(&name) || name == BY_PROFILE || expected.by_git)
        }
    };
    if !well {
        let place = if inside {
            "inside the fence"
        } else {
            "without a fence"
        };
        seen.wrongs.push(format!("started {place}: {}", line.rest));
    }
}

/// The login shell that is asked for its `PATH`, and what the system's profile starts in it. Nothing of it comes from
/// the workspace.
fn by_login(line: &TraceLine<'_>, expected: &ExpectedTrace<'_>, seen: &mut TraceReport) {
    let path = line.rest.split('"').nth(1).unwrap_or_default();
    let name = Path::new(path).file_name().and_then(|it| it.to_str());
    let is_known = [Some("bash"), Some(BY_PROFILE)].contains(&name)
        || path == expected.raddle
        || line.rest.contains(KEEPER);
    seen.started += 1;
    if path.starts_with(expected.root) && path != expected.raddle || !is_known {
        seen.wrongs
            .push(format!("started by the login shell: {}", line.rest));
    }
}

fn connect(
    line: &TraceLine<'_>,
    inside: bool,
    expected: &ExpectedTrace<'_>,
    seen: &mut TraceReport,
) {
    seen.connected += 1;
    let model = format!("sin_port=htons({})", expected.model);
    let is_model = line.rest.contains(&model) && line.rest.contains("\"127.0.0.1\"");
    let well = if inside {
        // What is started by git may try, and is heard by nobody; the host looks for itself.
        line.rest.contains(USERS) || expected.by_git
    } else {
        is_model
    };
    if !well {
        seen.wrongs.push(format!("called: {}", line.rest));
    }
}

/// Lines of which each is a whole call: those that others came between are put together, at their ends.
fn whole(text: &str) -> Vec<String> {
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
    // What never came to its end may have happened all the same.
    lines.extend(open.into_values().map(str::to_owned));
    lines
}

/// `PID call(words) = answer`.
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

    /// Whether whoever called was killed before there was an answer.
    fn is_cut(&self) -> bool {
        !self.rest.contains(" = ") || self.rest.contains(" = ?")
    }

    /// Whether strace found no word to read: what had called was dead by then, so nothing came of it.
    fn is_unreadable(&self) -> bool {
        !self.rest.contains('"')
    }

    fn is_birth(&self) -> bool {
        matches!(self.call, "clone" | "clone3" | "fork" | "vfork")
    }

    /// The process that it made, as the host numbers it.
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

/// The login shell that is asked for its `PATH`, and all that it started.
fn login<'a>(lines: &[TraceLine<'a>]) -> HashSet<&'a str> {
    let mut children: HashMap<&str, Vec<&'a str>> = HashMap::new();
    for line in lines {
        if let Some(child) = line.child() {
            children.entry(line.pid).or_default().push(child);
        }
    }
    let shells = lines.iter().filter(|it| {
        it.call.starts_with("execve") && it.rest.contains(LOGIN) && !it.rest.contains("= -1 ")
    });
    let mut login = HashSet::new();
    spread(shells.map(|it| it.pid).collect(), &children, &mut login);
    login
}

/// The processes that bubblewrap became, and all that they started.
fn fenced<'a>(lines: &[TraceLine<'a>]) -> HashSet<&'a str> {
    let mut children: HashMap<&str, Vec<&'a str>> = HashMap::new();
    let mut open = Vec::new();
    for line in lines {
        if let Some(child) = line.child() {
            children.entry(line.pid).or_default().push(child);
        }
        let is_start = line.call.starts_with("execve") && !line.rest.contains("= -1 ");
        if is_start && line.rest.contains("/bwrap\", ") {
            open.push(line.pid);
        }
    }
    let mut fenced = HashSet::new();
    spread(open, &children, &mut fenced);
    // A process that was killed while it made another does not say whose the other is. If all of those are inside,
    // so are the ones that are nobody's.
    let cut: Vec<&TraceLine<'_>> = lines
        .iter()
        .filter(|it| it.is_birth() && it.is_cut())
        .collect();
    if !cut.is_empty() && cut.iter().all(|it| fenced.contains(it.pid)) {
        let known: HashSet<&str> = children.values().flatten().copied().collect();
        let first = lines.first().map(|it| it.pid);
        let nobodys = lines.iter().map(|it| it.pid);
        let nobodys = nobodys.filter(|it| Some(*it) != first && !known.contains(it));
        spread(nobodys.collect(), &children, &mut fenced);
    }
    fenced
}

/// Adds these and all that they started.
fn spread<'a>(
    mut open: Vec<&'a str>,
    children: &HashMap<&str, Vec<&'a str>>,
    fenced: &mut HashSet<&'a str>,
) {
    while let Some(pid) = open.pop() {
        if fenced.insert(pid) {
            open.extend(children.get(pid).into_iter().flatten());
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

    /// A server that runs `ls` inside the fence.
    const WELL: &str = "\
10 execve(\"/opt/raddle\", [\"raddle\", \"app-server\"], 0x7 /* 9 vars */) = 0
10 connect(9, {sa_family=AF_INET, sin_port=htons(4010), sin_addr=inet_addr(\"127.0.0.1\")}, 16) = 0
10 clone3({flags=CLONE_VFORK} <unfinished ...>
11 execve(\"/usr/bin/bwrap\", [\"bwrap\"], 0x7 /* 3 vars */ <unfinished ...>
10 <... clone3 resumed>) = 11
11 <... execve resumed>) = 0
11 clone(child_stack=NULL, flags=CLONE_NEWPID) = 12
12 clone(child_stack=NULL) = 3 /* 13 in strace's PID NS */
13 execve(\"/run/raddle-fence\", [\"raddle\"], 0x7) = 0
13 execve(\"/usr/bin/ls\", [\"ls\"], 0x7) = 0
13 connect(3, {sa_family=AF_UNIX, sun_path=\"/var/run/nscd/socket\"}, 110) = -1 EPERM
";

    fn wrongs(line: &str) -> usize {
        judge(&format!("{WELL}{line}\n"), &EXPECTED).wrongs.len()
    }

    #[test]
    fn what_was_asked_for_is_expected() {
        let seen = judge(WELL, &EXPECTED);
        assert_eq!(seen.wrongs, [""; 0]);
        assert_eq!(
            (seen.started, seen.started_inside, seen.connected),
            (4, 3, 2)
        );
    }

    /// The login shell is known by what it is told, and so is what the system's profile starts in it.
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
    fn the_rest_is_not() {
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
    fn who_is_killed_while_it_begins_is_judged_by_who_began_it() {
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
        // Nobody was killed, so nobody can have begun it unseen.
        assert_eq!(wrongs(&format!("14 execve({ls}) = 0")), 1);
        assert_eq!(wrongs("10 execve(0x55e9, 0x55e8, 0x55e7) = 0"), 1);
    }
}
