//! The sandbox around the processes of clients.

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

/// Returns the description of this machine's sandbox for clients.
pub(crate) fn info(sandbox: &SandboxService) -> SandboxInfo {
    match sandbox.measurement() {
        Some(it) => {
            let open = it.findings.iter().filter(|finding| !finding.stopped);
            SandboxInfo {
                kind: it.sandbox.tier().name().to_owned(),
                not_held: open.map(|it| it.attempt.shows.to_owned()).collect(),
            }
        }
        None => SandboxInfo {
            kind: if sandbox.is_pending() {
                "pending"
            } else {
                "none"
            }
            .to_owned(),
            not_held: Vec::new(),
        },
    }
}

/// Plans a launch inside a policy. Keep the result until the command has ended.
pub(crate) async fn wrap(
    sandbox: &SandboxService,
    session: &Session,
    launch: Launch,
    confinement: Confinement,
) -> Result<ConfinedProcess, WireError> {
    let plan = sandbox.plan(launch, confinement).await?;
    // A client that requested write access gets an error here, rather than a failing command.
    if let Some(HoldConflict { path, about }) = plan.conflicts().first() {
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
        .run(&session.outgoing, || plan.wrap())
        .await??)
}

/// Returns the confinement of a command: the client's policy, else the configured one, else
/// read-only.
pub(crate) fn policy(
    requested: Option<&SandboxPolicy>,
    config: &State,
    cwd: &Path,
    hidden_paths: &[PathBuf],
) -> Result<Confinement, WireError> {
    let configured;
    let requested = match requested {
        Some(requested) => requested,
        None => {
            configured = permissions::of_config(&config.with_request(None), None)?.policy;
            &configured
        }
    };
    let (mut rules, has_network) = match requested {
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox(_) => {
            return Ok(Confinement {
                policy: Policy::FullAccess,
                network: None,
                accepts_second_tier: false,
            });
        }
        SandboxPolicy::ReadOnly(it) => (SandboxRules::read_only(), it.network_access),
        SandboxPolicy::WorkspaceWrite(it) => (workspace(it, cwd)?, it.network_access),
        SandboxPolicy::Unrecognized(_) => {
            return Err(unknown_policy());
        }
    };
    // The server's own files (keys, threads, rules) are hidden; a folder among them may still be
    // named as workspace.
    rules.hide_own(hidden_paths);
    Ok(Confinement {
        policy: Policy::Confined(rules),
        network: has_network.then(|| hosts(config)).transpose()?,
        accepts_second_tier: accepts_second(config),
    })
}

/// Returns the error for an unknown policy.
pub(crate) fn unknown_policy() -> WireError {
    let known = SandboxPolicy::KNOWN.join(", ");
    WireError::Refused(format!("unknown type of sandboxPolicy; use one of {known}").into())
}

/// Whether the operator accepts the second tier for commands that write folders.
pub(crate) fn accepts_second(config: &State) -> bool {
    config.text("sandbox_accept_tier") == Some("B")
}

/// Returns the hosts that commands with network access may reach: those that `sandbox_network`
/// lists, else every public host.
pub(crate) fn hosts(config: &State) -> Result<egress::EgressRules, WireError> {
    let invalid = |what: String| {
        WireError::Refused(format!("sandbox_network in the configuration: {what}").into())
    };
    let table = match config.value("sandbox_network") {
        None => return Ok(egress::EgressRules::all_public()),
        Some(toml::Value::Table(table)) => table,
        Some(_) => {
            return Err(invalid(
                "it must be a table with `allow` and `deny`".to_owned(),
            ));
        }
    };
    let (mut allow, mut deny) = (Vec::new(), Vec::new());
    for (key, value) in table {
        let list = match key.as_str() {
            "allow" => &mut allow,
            "deny" => &mut deny,
            _ => {
                return Err(invalid(format!(
                    "`{key}` is unknown; use `allow` or `deny`"
                )));
            }
        };
        let hosts: Option<Vec<&str>> = value
            .as_array()
            .and_then(|hosts| hosts.iter().map(toml::Value::as_str).collect());
        *list = hosts.ok_or_else(|| invalid(format!("`{key}` must be a list of hosts")))?;
    }
    egress::EgressRules::parse(allow, deny).map_err(|it| invalid(it.to_string()))
}

fn workspace(policy: &WorkspaceWriteSandboxPolicy, cwd: &Path) -> Result<SandboxRules, WireError> {
    let roots = policy.writable_roots.iter();
    let roots: Result<Vec<PathBuf>, WireError> = roots
        .map(|it| crate::services::files::absolute(it))
        .collect();
    let scratch = Scratch {
        tmp: !policy.exclude_slash_tmp,
        tmpdir: !policy.exclude_tmpdir_env_var,
    };
    SandboxRules::workspace(cwd, roots?, scratch).ok_or_else(|| {
        WireError::Refused(
            "the workspace would be the whole disk; name the folder with cwd, or ask for dangerFullAccess".into(),
        )
    })
}

/// Returns the policy of the given mode, else of the configured one. Its options are the keys of
/// the mode's table.
pub(crate) fn of_mode(
    config: &EffectiveConfig<'_>,
    mode: Option<&str>,
) -> Result<SandboxPolicy, WireError> {
    let configured = || config.text("sandbox_mode");
    Ok(match mode.or_else(configured).unwrap_or("read-only") {
        "danger-full-access" => SandboxPolicy::DangerFullAccess,
        "workspace-write" => SandboxPolicy::WorkspaceWrite(WorkspaceWriteSandboxPolicy {
            exclude_slash_tmp: flag(config, "exclude_slash_tmp")?,
            exclude_tmpdir_env_var: flag(config, "exclude_tmpdir_env_var")?,
            network_access: flag(config, "network_access")?,
            writable_roots: roots(config)?,
        }),
        "read-only" => SandboxPolicy::ReadOnly(ReadOnlySandboxPolicy {
            network_access: false,
        }),
        other => {
            let what = format!(
                "sandbox_mode is `{other}`, which is unknown; set it to read-only, workspace-write or danger-full-access"
            );
            return Err(match mode {
                Some(_) => WireError::Refused(what.into()),
                None => config.refused(what, &["sandbox_mode"]),
            });
        }
    })
}

const TABLE: &str = "sandbox_workspace_write";

fn in_table<'a>(config: &'a EffectiveConfig<'_>, key: &str) -> Option<&'a toml::Value> {
    config.value(TABLE)?.get(key)
}

fn flag(config: &EffectiveConfig<'_>, key: &str) -> Result<bool, WireError> {
    match in_table(config, key) {
        None => Ok(false),
        Some(toml::Value::Boolean(it)) => Ok(*it),
        Some(_) => {
            let what = format!("{TABLE}.{key} in the configuration must be true or false");
            Err(config.refused(what, &[TABLE, key]))
        }
    }
}

fn roots(config: &EffectiveConfig<'_>) -> Result<Vec<String>, WireError> {
    let invalid = || {
        let what =
            format!("{TABLE}.writable_roots in the configuration must be a list of absolute paths");
        config.refused(what, &[TABLE, "writable_roots"])
    };
    let Some(roots) = in_table(config, "writable_roots") else {
        return Ok(Vec::new());
    };
    let roots = roots.as_array().ok_or_else(invalid)?.iter();
    let roots = roots.map(|it| it.as_str().filter(|it| Path::new(it).is_absolute()));
    roots
        .map(|it| it.map(str::to_owned).ok_or_else(invalid))
        .collect()
}
