//! The goals of a release.

/// A goal of a release.
pub struct Goal {
    pub id: &'static str,
    pub name: &'static str,
    /// Target figure of the goal.
    pub target: &'static str,
    /// Names of the proofs that verify it.
    pub proofs: &'static [&'static str],
    /// Gaps that no proof covers yet, and their blockers.
    pub missing: &'static str,
}

pub const GOALS: &[Goal] = &[
    Goal {
        id: "G1",
        name: "Simulated threads without a violation",
        target: "20 million seeds per release, 4 million a night, 0 violations of the invariants.",
        proofs: &["simulator"],
        missing: "A hundredth of the size: each run of the proof plays the next 200,000 seeds, which `tests/simulator/results.txt` adds up. The rest waits for a machine that runs all night.",
    },
    Goal {
        id: "G2",
        name: "Strength of the simulator",
        target: "29 of 29 planted bugs found within 10,000 seeds each; every fault reached at least 100 times.",
        proofs: &["simulator"],
        missing: "Counts of reached faults are checked per 10,000 seeds, not per 100,000.",
    },
    Goal {
        id: "G3",
        name: "Crashes survived",
        target: "10,000 random `kill -9`, and every commit point × before and after × 200: 0 committed events lost, every thread takes the next turn.",
        proofs: &["crash"],
        missing: "A fifth of the random kills: 2,000.",
    },
    Goal {
        id: "G4",
        name: "Torn and damaged journals",
        target: "65,536 truncations and 524,288 changed bits: each gives the exact prefix or a typed quarantine.",
        proofs: &["damage"],
        missing: "2,000 changed bits of 524,288, and truncations by sample. Seven known kinds of damage are not noticed (docs/damage.md).",
    },
    Goal {
        id: "G5",
        name: "Full and failing disk",
        target: "ENOSPC and EIO at every write and sync of a script of three turns: 0 lost acknowledgements, 0 stuck turns.",
        proofs: &["crash"],
        missing: "Faults are injected into the journal's writer, not at every call of a whole server.",
    },
    Goal {
        id: "G6",
        name: "Exact rejoin",
        target: "A cut at each of 10,000 records × stdio, websocket, SSE: 30,000 reconnects, the transcript byte for byte the same.",
        proofs: &["rejoin"],
        missing: "SSE waits for `raddle serve`. On stdio the server is killed 500 times instead of cut at every record.",
    },
    Goal {
        id: "G7",
        name: "Approvals",
        target: "10,000 races of two clients, a restart in each state: exactly one effect or none; an answer after 30 days works.",
        proofs: &["rejoin", "approved"],
        missing: "1,000 races of 10,000. The 30 days are simulated by the core's tests, not by a run of the binary.",
    },
    Goal {
        id: "G8",
        name: "Fleet",
        target: "1,000 × (kill, SIGSTOP, partition) of the owner under load: 0 violations, take-over p99 at most TTL + 2 s.",
        proofs: &["nodes"],
        missing: "The fleet: one machine, 200 kills. Partitions and many machines wait for the PostgreSQL journal.",
    },
    Goal {
        id: "G9",
        name: "Bad inputs",
        target: "10⁹ fuzz executions per release over at least 8 targets, 0 crashes, 0 inputs over 100 ms; 5,000 malformed frames, 5,000 typed replies.",
        proofs: &["fuzz", "shell", "hostile"],
        missing: "Executions: a proof of 10 minutes per target is far from 10⁹; its record has the counts.",
    },
    Goal {
        id: "G10",
        name: "Escapes",
        target: "Tier A: 0 of at least 40 attempts; tier B: exactly the published list; self-test at most 300 ms.",
        proofs: &["escapes", "sandbox-cost"],
        missing: "Nothing known.",
    },
    Goal {
        id: "G11",
        name: "Hijacked model",
        target: "100,000 tool calls of an adversary: 0 writes outside, 0 secrets to unlisted hosts, 0 effects without a matching grant.",
        proofs: &["adversary"],
        missing: "A run every night; it is run by hand.",
    },
    Goal {
        id: "G12",
        name: "Containment",
        target: "1,000 × `kill -9` of the server with double-forked children: 0 descendants after 2 s.",
        proofs: &["left-behind"],
        missing: "Nothing known.",
    },
    Goal {
        id: "G13",
        name: "Noisy neighbours",
        target: "100 threads of which 5 are hostile, a client that never reads, 1,000 slow sockets: p99 of the others within 20 %, memory within its budget.",
        proofs: &["crowd", "slow-sockets"],
        missing: "The limit of the proof is a ratio of 1.5, because machines are noisy.",
    },
    Goal {
        id: "G14",
        name: "Endings",
        target: "10,000 turns over a model that fails: exactly one terminal event each.",
        proofs: &["always-ends"],
        missing: "100 turns for each of the 17 kinds of failure: 1,700 of 10,000.",
    },
    Goal {
        id: "G15",
        name: "Secrets",
        target: "200 planted secrets in environment, files, headers and errors: 0 in logs, traces, environments of children, calls of the model.",
        proofs: &["adversary"],
        missing: "Traces: there is no OTLP export yet.",
    },
    Goal {
        id: "G16",
        name: "Test of the tests",
        target: "A mutation score of at least 90 % on the core, 95 % on the sandbox policy.",
        proofs: &[],
        missing: "cargo-mutants was never run.",
    },
    Goal {
        id: "G17",
        name: "Soak",
        target: "12 hours at the published load with faults: 0 violations, memory and descriptors within 10 %.",
        proofs: &["soak"],
        missing: "20 minutes of 12 hours, and no faults of the disk.",
    },
    Goal {
        id: "G18",
        name: "Upgrade",
        target: "Every released journal folds in the newest version; 0 refusals inside one major version.",
        proofs: &[],
        missing: "Version 0.1.0 is not published yet. The tests of each change fold golden journals of every stored format, and open and continue a home that an older binary wrote.",
    },
    Goal {
        id: "G19",
        name: "Supply chain",
        target: "0 unexplained advisories, a bit-identical rebuild, every file signed.",
        proofs: &["reproducible"],
        missing: "Signatures: there is no release key yet.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goal_counts_the_planted_bugs() {
        let bugs = include_str!("../../../crates/raddle-core/src/bugs.rs");
        let (_, list) = bugs.split_once("const ALL: [Bug; ").expect("the list");
        let (count, _) = list.split_once(']').expect("its length");
        let goal = GOALS.iter().find(|it| it.id == "G2").expect("the goal");
        let target = format!("{count} of {count} planted bugs found");
        assert!(goal.target.starts_with(&target), "{}", goal.target);
    }
}
