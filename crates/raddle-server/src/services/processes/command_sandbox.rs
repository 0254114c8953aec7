//! The fence around what a client runs.

use std::path::{Path, PathBuf};

use raddle_protocol::{
    ReadOnlySandboxPolicy, SandboxInfo, SandboxPolicy, WorkspaceWriteSandboxPolicy,
};
use raddle_sandbox::{
    ConfinedProcess, Confinement, HoldConflict, Launch, Policy, SandboxRules, SandboxService,
    Scratch, egress,
};

use crate::services::config::{EffectiveConfig, State};
use crate::services::permissions;
use crate::session::Session;
use crate::wire_error::WireError;

/// What clients are told of the fence of this machine.
pub(crate) fn info(fences: &SandboxService) -> SandboxInfo {
    match fences.measurement() {
        Some(it) => {
            let open = it.findings.iter().filter(|finding| !finding.stopped);
            SandboxInfo {
                kind: it.sandbox.tier().name().to_owned(),
                not_held: open.map(|it| it.attempt.shows.to_owned()).collect(),
            }
        }
        None => SandboxInfo {
            kind: if fences.is_pending() {
                "pending"
            } else {
                "none"
            }
            .to_owned(),
            not_held: Vec::new(),
        },
    }
}

/// How a launch is started inside a policy. Keep what this returns until the command is over.
pub(crate) async fn wrap(
    fences: &SandboxService,
    session: &Session,
    launch: Launch,
    held: Confinement,
) -> Result<ConfinedProcess, WireError> {
    let ready = fences.plan(launch, held).await?;
    // A client that asked to write is told, and does not find out by an error of its command.
    if let Some(HoldConflict { path, about }) = ready.conflicts().first() {
        return Err(WireError::Refused(
            format!(
                "{} must not change while an approved command runs outside the sandbox: {about}; wait until it has \
                 ended, or ask for readOnly",
                path.display()
            )
            .into(),
        ));
    }
    Ok(session
        .disk
        .run(&session.outgoing, || ready.wrap())
        .await??)
}

/// What a command may do: what its client says, else what the configuration says, else read.
pub(crate) fn policy(
    wished: Option<&SandboxPolicy>,
    config: &State,
    cwd: &Path,
    own: &[PathBuf],
) -> Result<Confinement, WireError> {
    let configured;
    let wished = match wished {
        Some(wished) => wished,
        None => {
            configured = permissions::of_config(&config.with_request(None), None)?.policy;
            &configured
        }
    };
    let (mut rules, has_network) = match wished {
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox(_) => {
            return Ok(Confinement {
                policy: Policy::FullAccess,
                network: None,
                accepts_second: false,
            });
        }
        SandboxPolicy::ReadOnly(it) => (SandboxRules::read_only(), it.network_access),
        SandboxPolicy::WorkspaceWrite(it) => (workspace(it, cwd)?, it.network_access),
        SandboxPolicy::Unrecognized(_) => {
            return Err(unknown_policy());
        }
    };
    // What is the server's own (keys, threads, rules) is nobody else's; a folder in it may be worked on by name.
    rules.hide_own(own);
    Ok(Confinement {
        policy: Policy::Confined(rules),
        network: has_network.then(|| hosts(config)).transpose()?,
        accepts_second: accepts_second(config),
    })
}

/// That a policy is none that is known.
pub(crate) fn unknown_policy() -> WireError {
    let known = SandboxPolicy::KNOWN.join(", ");
    WireError::Refused(
        format!("the type of the sandboxPolicy is not known; use one of {known}").into(),
    )
}

/// Whether whoever runs the server accepts the second tier for commands that write folders.
pub(crate) fn accepts_second(config: &State) -> bool {
    config.text("sandbox_accept_tier") == Some("B")
}

/// Whom commands that may use the network can reach: those that `sandbox_network` lists, else all that is public.
pub(crate) fn hosts(config: &State) -> Result<egress::EgressRules, WireError> {
    let bad = |what: String| {
        WireError::Refused(format!("sandbox_network in the configuration: {what}").into())
    };
    let table = match config.value("sandbox_network") {
        None => return Ok(egress::EgressRules::all_public()),
        Some(toml::Value::Table(table)) => table,
        Some(_) => return Err(bad("it must be a table with `allow` and `deny`".to_owned())),
    };
    let (mut allow, mut deny) = (Vec::new(), Vec::new());
    for (key, value) in table {
        let list = match key.as_str() {
            "allow" => &mut allow,
            "deny" => &mut deny,
            _ => return Err(bad(format!("`{key}` is none of `allow` and `deny`"))),
        };
        let hosts: Option<Vec<&str>> = value
            .as_array()
            .and_then(|hosts| hosts.iter().map(toml::Value::as_str).collect());
        *list = hosts.ok_or_else(|| bad(format!("`{key}` must be a list of hosts")))?;
    }
    egress::EgressRules::parse(allow, deny).map_err(|it| bad(it.to_string()))
}

fn workspace(policy: &WorkspaceWriteSandboxPolicy, cwd: &Path) -> Result<SandboxRules, WireError> {
    let beside = policy.writable_roots.iter();
    let beside: Result<Vec<PathBuf>, WireError> = beside
        .map(|it| crate::services::files::absolute(it))
        .collect();
    let scratch = Scratch {
        tmp: !policy.exclude_slash_tmp,
        tmpdir: !policy.exclude_tmpdir_env_var,
    };
    SandboxRules::workspace(cwd, beside?, scratch).ok_or_else(|| {
        WireError::Refused(
            "the workspace would be the whole disk; name the folder with cwd, or ask for dangerFullAccess".into(),
        )
    })
}

/// The policy of the mode that the configuration names, or its policy for a mode that is named. Keys are those of its
/// table.
pub(crate) fn of_mode(
    said: &EffectiveConfig<'_>,
    mode: Option<&str>,
) -> Result<SandboxPolicy, WireError> {
    let configured = || said.text("sandbox_mode");
    Ok(match mode.or_else(configured).unwrap_or("read-only") {
        "danger-full-access" => SandboxPolicy::DangerFullAccess,
        "workspace-write" => SandboxPolicy::WorkspaceWrite(WorkspaceWriteSandboxPolicy {
            exclude_slash_tmp: flag(said, "exclude_slash_tmp")?,
            exclude_tmpdir_env_var: flag(said, "exclude_tmpdir_env_var")?,
            network_access: flag(said, "network_access")?,
            writable_roots: roots(said)?,
        }),
        "read-only" => SandboxPolicy::ReadOnly(ReadOnlySandboxPolicy {
            network_access: false,
        }),
        other => {
            let what = format!(
                "sandbox_mode is `{other}`, which is none that is known; set it to read-only, workspace-write or danger-full-access"
            );
            return Err(match mode {
                Some(_) => WireError::Refused(what.into()),
                None => said.refused(what, &["sandbox_mode"]),
            });
        }
    })
}

const TABLE: &str = "sandbox_workspace_write";

fn in_table<'a>(said: &'a EffectiveConfig<'_>, key: &str) -> Option<&'a toml::Value> {
    said.value(TABLE)?.get(key)
}

fn flag(said: &EffectiveConfig<'_>, key: &str) -> Result<bool, WireError> {
    match in_table(said, key) {
        None => Ok(false),
        Some(toml::Value::Boolean(it)) => Ok(*it),
        Some(_) => {
            let what = format!("{TABLE}.{key} in the configuration must be true or false");
            Err(said.refused(what, &[TABLE, key]))
        }
    }
}

fn roots(said: &EffectiveConfig<'_>) -> Result<Vec<String>, WireError> {
    let wrong = || {
        let what =
            format!("{TABLE}.writable_roots in the configuration must be a list of absolute paths");
        said.refused(what, &[TABLE, "writable_roots"])
    };
    let Some(roots) = in_table(said, "writable_roots") else {
        return Ok(Vec::new());
    };
    let roots = roots.as_array().ok_or_else(wrong)?.iter();
    let roots = roots.map(|it| it.as_str().filter(|it| Path::new(it).is_absolute()));
    roots
        .map(|it| it.map(str::to_owned).ok_or_else(wrong))
        .collect()
}
