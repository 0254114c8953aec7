//! Finds the descendants of a process in `/proc`, and kills them.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{
    Pid, PidfdFlags, Signal, getpgrp, getpid, kill_process, kill_process_group, pidfd_open,
    pidfd_send_signal,
};

/// Checks of our own children before all processes are checked.
const QUICK_LOOKS_MAX: usize = 64;

/// A process as `/proc` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcessInfo {
    pub(super) pid: i32,
    pub(super) name: String,
    /// Whether it has ended and waits to be reaped. A process whose first thread has ended looks
    /// like this too, so it must not be skipped.
    pub(super) is_dead: bool,
    parent: i32,
    group: i32,
    /// Start time, in ticks since boot. Distinguishes it from another process with the same pid.
    began: u64,
}

impl ProcessInfo {
    /// Parses `/proc/PID/stat`. The name is in parentheses and may contain parentheses itself. A
    /// process that is being reaped has the group -1, which is rejected: to kill that group would
    /// be to kill process 1.
    fn read(stat: &str) -> Option<Self> {
        let (pid, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok().filter(|it| *it > 0)?;
        let began = fields.nth(16)?.parse().ok()?;
        Some(Self {
            pid: pid.parse().ok()?,
            name: printable(name),
            is_dead: matches!(state, "Z" | "X" | "x"),
            parent,
            group,
            began,
        })
    }

    fn of_pid(pid: i32) -> Option<Self> {
        Self::read(&String::from_utf8_lossy(
            &fs::read(format!("/proc/{pid}/stat")).ok()?,
        ))
    }

    /// Kills the process, and its group if that is not ours. A group is killed in one step, so that
    /// children which are just being forked are killed too. Sessions keep groups apart: a process
    /// that shares a group with a descendant is a descendant.
    ///
    /// Its parent may reap it at any moment, and then its pid is free for another process. So it is
    /// pinned by a pidfd first, and checked again: the killed process is the checked one. Its group
    /// has only a number; that stays occupied as long as the process is not reaped, and to be
    /// reused the pids would have to wrap around between two calls.
    fn kill(&self, groups: &mut BTreeSet<i32>) {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return;
        };
        let pidfd = pidfd_open(pid, PidfdFlags::empty());
        let now = Self::of_pid(self.pid).filter(|now| now.began == self.began);
        let Some(now) = now else {
            return;
        };
        if groups.insert(now.group) {
            let group = Pid::from_raw(now.group);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        }
        let _ = match pidfd {
            Ok(pidfd) => pidfd_send_signal(pidfd, Signal::KILL),
            // Kernels and containers without pidfds.
            Err(_) => kill_process(pid, Signal::KILL),
        };
    }
}

/// Returns a name as one word of printable characters.
fn printable(name: &str) -> String {
    let letter = |it: char| if it.is_ascii_graphic() { it } else { '?' };
    name.chars().map(letter).collect()
}

/// Kills all descendants of this process that it finds, and returns them. Each is killed as soon as
/// it is found, so that it has no time to fork. A killed process cannot fork any more, so stopping
/// all of them first gains nothing.
///
/// One pass may miss some. The next pass finds those.
pub(super) fn kill_all() -> Vec<ProcessInfo> {
    // Our own group must not be killed.
    let mut groups = BTreeSet::from([getpgrp().as_raw_pid()]);
    let mut killed = kill_children(&mut groups);
    let members = pids("/proc").filter_map(ProcessInfo::of_pid);
    let targets = descendants(getpid().as_raw_pid(), members);
    killed.extend(kill_each(targets, |member| member.kill(&mut groups)));
    killed
}

/// Kills processes as they come, those that look dead last: killing a group would make the living
/// in it look dead too, before they are seen, and the report would not name them.
fn kill_each(
    members: impl Iterator<Item = ProcessInfo>,
    mut kill: impl FnMut(&ProcessInfo),
) -> Vec<ProcessInfo> {
    let (mut killed, mut dead) = (Vec::new(), Vec::new());
    for member in members {
        if member.is_dead {
            dead.push(member);
        } else {
            kill(&member);
            killed.push(member);
        }
    }
    dead.iter().for_each(kill);
    killed.append(&mut dead);
    killed
}

/// Kills our own children until there is no new one. A process that has lost its parent is among
/// them at once, and reading their list is a hundred times quicker than reading all processes:
/// quick enough for one that hops from parent to parent. Kernels without these lists return no
/// children here.
fn kill_children(groups: &mut BTreeSet<i32>) -> Vec<ProcessInfo> {
    let mut known = BTreeSet::new();
    let mut killed = Vec::new();
    for _ in 0..QUICK_LOOKS_MAX {
        let before = killed.len();
        for thread in pids("/proc/self/task") {
            let list = fs::read_to_string(format!("/proc/self/task/{thread}/children"));
            let list = list.unwrap_or_default();
            let children = list.split_whitespace().filter_map(|pid| pid.parse().ok());
            let new = children.filter(|pid| known.insert(*pid));
            let new = new.filter_map(ProcessInfo::of_pid);
            killed.extend(kill_each(new, |member| member.kill(groups)));
        }
        if killed.len() == before {
            break;
        }
    }
    killed
}

/// Returns the numeric names in a folder of `/proc`, ascending.
fn pids(folder: &str) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the descendants of a process, from all processes in the order of their pids. A child
/// mostly has a higher pid than its parent, so it mostly comes after it.
fn descendants(
    ancestor: i32,
    all: impl Iterator<Item = ProcessInfo>,
) -> impl Iterator<Item = ProcessInfo> {
    let mut family = BTreeSet::from([ancestor]);
    all.filter(move |member| family.contains(&member.parent) && family.insert(member.pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: i32, name: &str, state: char, parent: i32) -> String {
        format!("{pid} ({name}) {state} {parent} 7 7 0 -1 4 0 0 0 0 1 2 0 0 20 0 1 0 4242 9 9\n")
    }

    #[test]
    fn any_process_name_is_parsed() {
        for (name, plain) in [
            ("sh", "sh"),
            (") S 1 (", ")?S?1?("),
            ("a b", "a?b"),
            ("", ""),
            ("\n1 (x)", "?1?(x)"),
        ] {
            let member = ProcessInfo::read(&stat(12, name, 'S', 3)).expect("a process");
            let read = (member.pid, member.parent, member.group, member.is_dead);
            assert_eq!(read, (12, 3, 7, false), "{name:?}");
            assert_eq!(member.began, 4242);
            assert_eq!(member.name, plain);
        }
        let reaped = stat(12, "sh", 'X', 0).replace(" 7 7 ", " -1 -1 ");
        for text in ["12 (sh", "12 (sh) S 3", &reaped] {
            assert_eq!(ProcessInfo::read(text), None, "{text}");
        }
    }

    #[test]
    fn living_processes_are_killed_before_the_groups_of_dead_ones() {
        let all = [(20, 'Z'), (21, 'S'), (22, 'X'), (23, 'R')];
        let members = all
            .iter()
            .filter_map(|(pid, state)| ProcessInfo::read(&stat(*pid, "x", *state, 10)));
        let mut order = Vec::new();
        let killed = kill_each(members, |member| order.push(member.pid));
        assert_eq!(order, [21, 23, 20, 22]);
        let killed: Vec<i32> = killed.iter().map(|it| it.pid).collect();
        assert_eq!(killed, order);
    }

    #[test]
    fn only_descendants_are_found() {
        let all = [
            (1, 'S', 0),
            (10, 'S', 1),
            (11, 'S', 1),
            (20, 'Z', 10),
            (21, 'S', 10),
            (22, 'S', 11),
            (30, 'S', 20),
            (31, 'S', 21),
        ];
        let members = all.iter().filter_map(|(pid, state, parent)| {
            ProcessInfo::read(&stat(*pid, "x", *state, *parent))
        });
        let pids: Vec<i32> = descendants(10, members).map(|it| it.pid).collect();
        assert_eq!(pids, [20, 21, 30, 31]);
    }
}
