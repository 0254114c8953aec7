//! The descendants of a process, read off `/proc`, and their end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rustix::process::{
    Pid, PidfdFlags, Signal, getpgrp, kill_process_group, pidfd_open, pidfd_send_signal,
};

/// A process as the system tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) pid: i32,
    pub(super) name: String,
    /// Whether it has ended and only waits to be taken. A process whose first thread has ended looks like
    /// this too, so it is no reason to pass it over.
    pub(super) is_dead: bool,
    parent: i32,
    group: i32,
    /// When it was started: with the pid it tells one process from all others.
    start: u64,
}

impl Member {
    /// Reads `/proc/PID/stat`. The name stands in parentheses and may hold some itself.
    fn read(stat: &str) -> Option<Self> {
        let (pid, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some(Self {
            pid: pid.parse().ok()?,
            name: plain(name),
            is_dead: matches!(state, "Z" | "X" | "x"),
            parent,
            group,
            start: fields.nth(16)?.parse().ok()?,
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
    fn end(&self, groups: &mut BTreeSet<i32>) {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return;
        };
        // From here on the pid cannot come to mean another process without being noticed.
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else {
            return;
        };
        if Self::look(self.pid).is_none_or(|now| now.start != self.start) {
            return;
        }
        if self.group != getpgrp().as_raw_pid() && groups.insert(self.group) {
            let group = Pid::from_raw(self.group);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        }
        let _ = pidfd_send_signal(held, Signal::KILL);
    }
}

/// A name as one word of printable letters.
fn plain(name: &str) -> String {
    let letter = |it: char| if it.is_ascii_graphic() { it } else { '?' };
    name.chars().map(letter).collect()
}

/// All descendants of a process, parents before their children.
pub(super) fn of(ancestor: i32) -> Vec<Member> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let members = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Member::look);
    descendants(ancestor, members)
}

fn descendants(ancestor: i32, all: impl Iterator<Item = Member>) -> Vec<Member> {
    let mut children: BTreeMap<i32, Vec<Member>> = BTreeMap::new();
    for member in all {
        children.entry(member.parent).or_default().push(member);
    }
    let mut found = children.remove(&ancestor).unwrap_or_default();
    let mut next = 0;
    while next < found.len() {
        let more = children.remove(&found[next].pid);
        found.extend(more.unwrap_or_default());
        next += 1;
    }
    found
}

/// Ends them all, parents first, so that nobody brings back a child that was ended. Who is told to be
/// dead cannot fork any more, so there is nothing to gain from stopping everyone first.
pub(super) fn end(family: &[Member]) {
    let mut groups = BTreeSet::new();
    for member in family {
        member.end(&mut groups);
    }
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
            let member = Member::read(&stat(12, name, 'S', 3)).expect("a process");
            let read = (
                member.pid,
                member.parent,
                member.group,
                member.start,
                member.is_dead,
            );
            assert_eq!(read, (12, 3, 7, 4242, false), "{name:?}");
            assert_eq!(member.name, plain);
        }
        assert_eq!(Member::read("12 (sh"), None);
        assert_eq!(Member::read("12 (sh) S 3"), None);
    }

    #[test]
    fn parents_come_before_their_children_and_nobody_else_comes() {
        let all = [
            (30, 'S', 20),
            (20, 'Z', 10),
            (11, 'S', 1),
            (21, 'S', 10),
            (31, 'S', 21),
            (10, 'S', 1),
        ];
        let members = all
            .iter()
            .filter_map(|(pid, state, parent)| Member::read(&stat(*pid, "x", *state, *parent)));
        let found: Vec<i32> = descendants(10, members).iter().map(|it| it.pid).collect();
        assert_eq!(found, [20, 21, 30, 31]);
    }

    #[test]
    fn a_child_of_ours_is_found_and_ended() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("a child");
        let me = rustix::process::getpid().as_raw_pid();
        let family: Vec<Member> = of(me)
            .into_iter()
            .filter(|it| it.pid == child.id() as i32)
            .collect();
        assert_eq!(family.len(), 1);
        end(&family);
        let status = child.wait().expect("a status");
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(9)
        );
    }
}
