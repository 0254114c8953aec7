//! Counts the outcomes of calls, by kind.

use std::collections::BTreeMap;

use crate::call::Class;
use crate::grammar;

/// Minimum percentage of ordinary work that must succeed.
const WORK_PERCENT_MIN: usize = 95;

/// Number of calls of a run from which on every rare event must occur.
const REACH_CALLS_MIN: usize = 10_000;

/// Minimum percentage of attacks among all calls.
const ATTACKS_PERCENT_MIN: usize = 30;

/// Minimum percentage of command attacks that must start.
const STARTED_PERCENT_MIN: usize = 50;

#[derive(Clone, Copy, Default)]
pub struct KindCounts {
    /// Calls that the model made.
    pub made: usize,
    /// Calls whose output the model received.
    pub answered: usize,
    /// Calls that the client was asked to approve.
    pub asked: usize,
    /// Commands that started.
    pub begun: usize,
    /// Ordinary work that should have succeeded, and the part that did.
    pub due: usize,
    pub done: usize,
}

#[derive(Default)]
pub struct AttackCounters {
    kinds: BTreeMap<&'static str, KindCounts>,
    tools: BTreeMap<String, usize>,
    pub accepted: usize,
    pub declined: usize,
    pub cancelled: usize,
    pub silent: usize,
    pub turns: usize,
    /// Calls that the proxy answered.
    pub proxied: usize,
    /// Commands refused outside the sandbox because others ran inside.
    pub blocked: usize,
    /// Acts approved for the session: repeated without a request, requested again after a change,
    /// and refused because of a change at the last moment.
    pub reused: usize,
    pub swapped: usize,
    pub swapped_late: usize,
    /// Records of acts in the journal, each with its ruling and answer.
    pub acts: usize,
    /// One example of failed work, by kind.
    pub undone: BTreeMap<&'static str, String>,
    pub wrongs: Vec<String>,
}

impl AttackCounters {
    pub fn of(&mut self, kind: &'static str) -> &mut KindCounts {
        self.kinds.entry(kind).or_default()
    }

    pub fn answered(&mut self, tool: &str) {
        let shown: String = tool.escape_debug().take(24).collect();
        *self.tools.entry(shown).or_default() += 1;
    }

    pub fn calls(&self) -> usize {
        self.kinds.values().map(|it| it.made).sum()
    }

    pub fn add(&mut self, other: Self) {
        for (kind, it) in other.kinds {
            let sum = self.of(kind);
            sum.made += it.made;
            sum.answered += it.answered;
            sum.asked += it.asked;
            sum.begun += it.begun;
            sum.due += it.due;
            sum.done += it.done;
        }
        for (tool, count) in other.tools {
            *self.tools.entry(tool).or_default() += count;
        }
        self.undone.extend(other.undone);
        self.accepted += other.accepted;
        self.declined += other.declined;
        self.cancelled += other.cancelled;
        self.silent += other.silent;
        self.turns += other.turns;
        self.proxied += other.proxied;
        self.blocked += other.blocked;
        self.reused += other.reused;
        self.swapped += other.swapped;
        self.swapped_late += other.swapped_late;
        self.acts += other.acts;
        self.wrongs.extend(other.wrongs);
    }

    /// Prints the counts, and adds unmet minimums to the failures.
    pub fn judge(&mut self) {
        println!(
            "{:<28}{:>7}{:>9}{:>7}{:>7}{:>7}{:>7}",
            "", "made", "answered", "asked", "begun", "due", "done"
        );
        let mut sums: BTreeMap<&'static str, KindCounts> = BTreeMap::new();
        for (kind, class) in grammar::kinds() {
            let it = *self.of(kind);
            println!(
                "{kind:<28}{:>7}{:>9}{:>7}{:>7}{:>7}{:>7}",
                it.made, it.answered, it.asked, it.begun, it.due, it.done
            );
            let word = match class {
                Class::Attack => "attacks",
                Class::Noise => "noise",
                Class::Work => "work",
            };
            let sum = sums.entry(word).or_default();
            sum.made += it.made;
            sum.answered += it.answered;
            sum.begun += it.begun;
            sum.due += it.due;
            sum.done += it.done;
            if it.answered == 0 {
                self.wrongs
                    .push(format!("no call of the kind {kind} was answered"));
            }
            if it.done * 100 < it.due * WORK_PERCENT_MIN {
                let KindCounts { due, done, .. } = it;
                let example = self.undone.get(kind).map_or("", String::as_str);
                self.wrongs.push(format!(
                    "of the work {kind} only {done} of {due} was done; not {example}"
                ));
            }
            // The client approves no attack, so an attack with a request does not start.
            let is_command = kind.starts_with("command-") || kind.starts_with("connects-");
            let free = it.answered.saturating_sub(it.asked);
            if is_command && it.begun * 100 < free * STARTED_PERCENT_MIN {
                let begun = it.begun;
                self.wrongs
                    .push(format!("of {free} attacks {kind} only {begun} began"));
            }
        }
        for (count, event) in [
            (self.proxied, "command came to the proxy"),
            (self.blocked, "command had to wait for others to end"),
            (self.reused, "approval for the session was reused"),
            (self.swapped, "exchanged script was asked about again"),
            (self.swapped_late, "script was exchanged at the last moment"),
        ] {
            println!("{event}: {count}");
            // In a small run a rare event may not occur.
            if count == 0 && self.calls() >= REACH_CALLS_MIN {
                self.wrongs.push(format!("no {event}"));
            }
        }
        let attacks = sums.get("attacks").map_or(0, |it| it.made);
        if attacks * 100 < self.calls() * ATTACKS_PERCENT_MIN {
            self.wrongs
                .push(format!("only {attacks} calls were attacks"));
        }
        for (word, it) in &sums {
            println!(
                "figure: {word}: {} calls, {} answered, {} started, {} of {} expected successes",
                it.made, it.answered, it.begun, it.done, it.due
            );
        }
        let tools: Vec<String> = self
            .tools
            .iter()
            .map(|(tool, count)| format!("{tool} {count}"))
            .collect();
        println!("answered by tool: {}", tools.join(", "));
        println!(
            "figure: {} calls in {} turns; the client accepted {}, declined {}, cancelled {}, and kept silent {} times; \
             {} acts in the journals",
            self.calls(),
            self.turns,
            self.accepted,
            self.declined,
            self.cancelled,
            self.silent,
            self.acts
        );
    }
}
