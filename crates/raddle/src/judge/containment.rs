//! The containment of a command: the sandbox of new threads, as configured and as this machine can
//! enforce it.

use std::path::Path;

use anyhow::Result;
use raddle_config::{Configuration, permissions};
use raddle_core::Sandbox;
use raddle_core::policy::Verdict;
use raddle_sandbox::Tier;

/// The sandbox of a command.
pub(super) struct Containment {
    pub(super) sandbox: Sandbox,
    /// Whether the operator accepts a sandbox that cannot protect names in writable folders.
    accepts_tier_b: bool,
}

impl Containment {
    /// Reads the sandbox of new threads from the configuration.
    pub(super) fn of(config: &Configuration) -> Result<Self> {
        let state = config.state();
        let effective = state.with_request(None);
        permissions::check_mode(&effective)?;
        let choice = permissions::of_config(&effective, None)?;
        if raddle_config::has_network(&choice.sandbox) {
            state.hosts()?;
        }
        Ok(Self {
            sandbox: choice.sandbox,
            accepts_tier_b: state.text("sandbox_accept_tier") == Some("B"),
        })
    }

    /// Whether the command would run in a sandbox, so that the tier of this machine matters.
    pub(super) fn is_confined(&self, beyond: bool) -> bool {
        !beyond && !matches!(self.sandbox, Sandbox::FullAccess)
    }

    /// Describes the containment of a command in one line. Without a sandbox there is no tier.
    pub(super) fn line(&self, verdict: Verdict, tier: Option<Tier>, cwd: &Path) -> String {
        let would = match verdict {
            Verdict::Deny => return "would not run".to_owned(),
            Verdict::Ask => "if approved, would",
            Verdict::Allow => "would",
        };
        let Some(tier) = tier else {
            return format!("{would} run without a sandbox");
        };
        let letter = tier.letter().to_uppercase();
        let writes = self.written(cwd);
        let is_weak = tier == Tier::B && !writes.is_empty() && !self.accepts_tier_b;
        if tier == Tier::C || is_weak {
            return format!(
                "{would} be refused: this machine cannot enforce its sandbox (tier {letter}); `raddle doctor` says how to fix that"
            );
        }
        let writes = match writes.is_empty() {
            true => "writes nothing".to_owned(),
            false => format!("writes only {}", writes.join(", ")),
        };
        let network = match raddle_config::has_network(&self.sandbox) {
            true => "network through the proxy",
            false => "no network",
        };
        let reads = match self.sandbox.reads() {
            None => String::new(),
            Some(reads) => {
                let others = reads.iter().map(|it| format!(", {it}"));
                let others: String = others.collect();
                format!("reads only the system's files, {}{others}; ", cwd.display())
            }
        };
        format!("{would} run in the sandbox (tier {letter}): {reads}{writes}; {network}")
    }

    /// The folders that the command could write.
    fn written(&self, cwd: &Path) -> Vec<String> {
        let mut folders = Vec::new();
        if let Sandbox::WorkspaceWrite {
            without_tmp,
            without_tmpdir,
            ..
        } = &self.sandbox
        {
            folders.push(cwd.display().to_string());
            folders.extend((!without_tmp).then(|| "/tmp".to_owned()));
            let tmpdir = std::env::var("TMPDIR").ok().filter(|it| it != "/tmp");
            let tmpdir = tmpdir.filter(|it| !without_tmpdir && !it.is_empty());
            folders.extend(tmpdir);
        }
        folders.extend(self.sandbox.roots().iter().cloned());
        folders
    }
}
