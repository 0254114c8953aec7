//! What became of the calls, by their kinds.

use std::collections::BTreeMap;

use crate::call::Class;
use crate::grammar;

/// Of ordinary work, so many in a hundred calls must do what they set out to.
const WORK_PERCENT_MIN: usize = 95;

/// How many calls a run has in which everything rare must have come up.
const REACH_CALLS_MIN: usize = 10_000;

/// Of all calls, so many in a hundred must be attacks.
const ATTACKS_PERCENT_MIN: usize = 30;

/// Of attacks by commands, so many in a hundred must have begun.
const STARTED_PERCENT_MIN: usize = 50;

#[derive(Clone, Copy, Default)]
pub struct KindCounts {
    /// Calls that the model made.
    pub made: usize,
    /// Those whose output came back to it.
    pub answered: usize,
    /// Those about which the client was asked.
    pub asked: usize,
    /// Commands that began.
    pub begun: usize,
    /// Ordinary work that had nothing against it, and what of that was done.
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
    /// Commands that were not let beyond the fence while others ran in it.
    pub held: usize,
    /// Acts with a yes for the session: done again, asked about once they were others, and not done where they
    /// became others at the last moment.
    pub kept: usize,
    pub swapped: usize,
    pub swapped_late: usize,
    /// Records of acts in the journal, each with its ruling and what was answered.
    pub acts: usize,
    /// One example of work of each kind that was not done.
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
        self.held += other.held;
        self.kept += other.kept;
        self.swapped += other.swapped;
        self.swapped_late += other.swapped_late;
        self.acts += other.acts;
        self.wrongs.extend(other.wrongs);
    }

    /// Prints what there is to see, and adds what was not reached to what went wrong.
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
            // Nobody says yes to an attack, so one that is asked about does not begin.
            let is_command = kind.starts_with("command-") || kind.starts_with("connects-");
            let free = it.answered.saturating_sub(it.asked);
            if is_command && it.begun * 100 < free * STARTED_PERCENT_MIN {
                let begun = it.begun;
                self.wrongs
                    .push(format!("of {free} attacks {kind} only {begun} began"));
            }
        }
        for (count, what) in [
            (self.proxied, "command came to the proxy"),
            (self.held, "command had to wait for others to end"),
            (self.kept, "yes for the session was used again"),
            (self.swapped, "exchanged script was asked about again"),
            (self.swapped_late, "script was exchanged at the last moment"),
        ] {
            println!("{what}: {count}");
            // In a slice it is left to chance whether a rare one comes up.
            if count == 0 && self.calls() >= REACH_CALLS_MIN {
                self.wrongs.push(format!("no {what}"));
            }
        }
        let attacks = sums.get("attacks").map_or(0, |it| it.made);
        if attacks * 100 < self.calls() * ATTACKS_PERCENT_MIN {
            self.wrongs
                .push(format!("only {attacks} calls were attacks"));
        }
        for (word, it) in &sums {
            println!(
                "figure: {word}: {} made, {} answered, {} begun, {} of {} done",
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
