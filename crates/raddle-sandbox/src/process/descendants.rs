//! The descendants of a process, read off `/proc`, and their end.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{
    Pid, PidfdFlags, Signal, getpgrp, getpid, kill_process, kill_process_group, pidfd_open,
    pidfd_send_signal,
};

/// How often our own children are looked at before all processes are.
const QUICK_LOOKS_MAX: usize = 64;

/// A process as the system tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcessInfo {
    pub(super) pid: i32,
    pub(super) name: String,
    /// Whether it has ended and only waits to be taken. A process whose first thread has ended looks like
    /// this too, so it is no reason to pass it over.
    pub(super) is_dead: bool,
    parent: i32,
    group: i32,
    /// When it began, in ticks since the machine did. Tells it from another of its number.
    began: u64,
}

impl ProcessInfo {
    /// Reads `/proc/PID/stat`. The name stands in parentheses and may hold some itself. A process that is being buried has
    /// the group -1: to end that one would be to end whoever has the number 1.
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
            name: plain(name),
            is_dead: matches!(state, "Z" | "X" | "x"),
            parent,
            group,
            began,
        })
    }

    fn look(pid: i32) -> Option<Self> {
        Self::read(&String::from_utf8_lossy(
            &fs::read(format!("/proc/{pid}/stat")).ok()?,
        ))
    }

    /// Ends it, and its group with it if it lives in another than ours. A group is ended in one step, so
    /// that those in it which are just being born are ended too. Sessions keep groups apart: whoever
    /// shares one with a descendant is a descendant.
    ///
    /// Its parent may bury it at any moment, and then its number is free for a stranger. So it is held first,
    /// and looked at again: what is ended is what was looked at. Its group has only a number; that stays taken
    /// as long as it is not buried, and to be given away it would take a round through all numbers between two calls.
    fn end(&self, groups: &mut BTreeSet<i32>) {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return;
        };
        let held = pidfd_open(pid, PidfdFlags::empty());
        let now = Self::look(self.pid).filter(|now| now.began == self.began);
        let Some(now) = now else {
            return;
        };
        if groups.insert(now.group) {
            let group = Pid::from_raw(now.group);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        }
        let _ = match held {
            Ok(held) => pidfd_send_signal(held, Signal::KILL),
            // Kernels and containers without such holds.
            Err(_) => kill_process(pid, Signal::KILL),
        };
    }
}

/// A name as one word of printable letters.
fn plain(name: &str) -> String {
    let letter = |it: char| if it.is_ascii_graphic() { it } else { '?' };
    name.chars().map(letter).collect()
}

/// Ends all descendants of this process that it finds, and gives them. Each is ended as soon as it is
/// seen: it has no time to fork. Who is told to be dead cannot fork any
/// more, so there is nothing to gain from stopping everyone first.
///
/// One look may miss some. Those are in the next.
pub(super) fn end() -> Vec<ProcessInfo> {
    // Our own group is not to be ended.
    let mut groups = BTreeSet::from([getpgrp().as_raw_pid()]);
    let mut ended = orphans(&mut groups);
    let members = pids("/proc").filter_map(ProcessInfo::look);
    let found = descendants(getpid().as_raw_pid(), members);
    ended.extend(end_each(found, |member| member.end(&mut groups)));
    ended
}

/// Ends processes as they come, those that look dead last: the end of a group would make the living in it look dead too,
/// before they are seen, and nobody would be told of them.
fn end_each(
    found: impl Iterator<Item = ProcessInfo>,
    mut end: impl FnMut(&ProcessInfo),
) -> Vec<ProcessInfo> {
    let (mut ended, mut dead) = (Vec::new(), Vec::new());
    for member in found {
        if member.is_dead {
            dead.push(member);
        } else {
            end(&member);
            ended.push(member);
        }
    }
    dead.iter().for_each(end);
    ended.append(&mut dead);
    ended
}

/// Ends our own children, until there is no new one. Who has lost its parent is among them at once, and
/// a look at these is a hundred times quicker than one at all processes: quick enough for one that hops
/// from parent to parent. Kernels without these lists tell of no children here.
fn orphans(groups: &mut BTreeSet<i32>) -> Vec<ProcessInfo> {
    let mut seen = BTreeSet::new();
    let mut ended = Vec::new();
    for _ in 0..QUICK_LOOKS_MAX {
        let before = ended.len();
        for thread in pids("/proc/self/task") {
            let list = fs::read_to_string(format!("/proc/self/task/{thread}/children"));
            let list = list.unwrap_or_default();
            let children = list.split_whitespace().filter_map(|pid| pid.parse().ok());
            let new = children.filter(|pid| seen.insert(*pid));
            let new = new.filter_map(ProcessInfo::look);
            ended.extend(end_each(new, |member| member.end(groups)));
        }
        if ended.len() == before {
            break;
        }
    }
    ended
}

/// The numbers that a folder of the system's has for names, rising.
fn pids(folder: &str) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Of all processes, in the order of their pids, the descendants of one. A child mostly has a higher pid
/// than its parent, so it mostly comes after it.
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
    fn whatever_a_process_calls_itself_it_is_read_right() {
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
        let buried = stat(12, "sh", 'X', 0).replace(" 7 7 ", " -1 -1 ");
        for text in ["12 (sh", "12 (sh) S 3", &buried] {
            assert_eq!(ProcessInfo::read(text), None, "{text}");
        }
    }

    #[test]
    fn the_living_are_ended_before_the_groups_of_the_dead() {
        let all = [(20, 'Z'), (21, 'S'), (22, 'X'), (23, 'R')];
        let members = all
            .iter()
            .filter_map(|(pid, state)| ProcessInfo::read(&stat(*pid, "x", *state, 10)));
        let mut order = Vec::new();
        let ended = end_each(members, |member| order.push(member.pid));
        assert_eq!(order, [21, 23, 20, 22]);
        let ended: Vec<i32> = ended.iter().map(|it| it.pid).collect();
        assert_eq!(ended, order);
    }

    #[test]
    fn descendants_are_found_and_nobody_else() {
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
        let found: Vec<i32> = descendants(10, members).map(|it| it.pid).collect();
        assert_eq!(found, [20, 21, 30, 31]);
    }
}
