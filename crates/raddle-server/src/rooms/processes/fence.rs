//! The fence around what a client runs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use raddle_protocol::{
    ReadOnlySandboxPolicy, SandboxInfo, SandboxPolicy, WorkspaceWriteSandboxPolicy,
};
use raddle_sandbox::egress::{self, Noted, Proxy, System, WayOut};
use raddle_sandbox::{Fence, Fenced, Launch, Measured, Network, Policy, Refused, Rules, Tier};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::rooms::config::State;
use crate::session::Session;
use crate::wire_error::WireError;

/// Finds out how strong the fence of this machine is. It may take a while.
#[derive(Clone)]
pub struct Measure(Arc<dyn Fn() -> Measured + Send + Sync>);

impl Measure {
    /// What `measure` finds.
    pub fn new(measure: impl Fn() -> Measured + Send + Sync + 'static) -> Self {
        Self(Arc::new(measure))
    }
}

impl fmt::Debug for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Measure")
    }
}

/// How long a command waits for the fence to be measured, which takes a part of a second.
const MEASURED: Duration = Duration::from_secs(10);

/// The fence of this machine. It is measured in the background: start-up does not wait for it, commands do.
#[derive(Debug)]
pub(crate) struct Fences {
    /// A folder that no fenced command sees.
    folder: PathBuf,
    measured: watch::Receiver<Option<Arc<Measured>>>,
}

impl Fences {
    /// Begins to measure. Without anything to measure with there is no fence, and nothing is run in one.
    pub(crate) fn measure(measure: Option<Measure>, folder: PathBuf) -> Self {
        let (found, measured) = watch::channel(None);
        if let Some(Measure(measure)) = measure {
            let work = move || {
                let it = measure();
                let (tier, short_of) = (it.fence.tier().name(), &it.short_of);
                tracing::info!(tier, cached = it.cached, ?short_of, "the fence is measured");
                found.send_replace(Some(Arc::new(it)));
            };
            if let Err(error) = std::thread::Builder::new()
                .name("fence".to_owned())
                .spawn(work)
            {
                tracing::error!(%error, "the fence cannot be measured");
            }
        }
        Self { folder, measured }
    }

    /// What clients are told of it.
    pub(crate) fn info(&self) -> SandboxInfo {
        let is_pending = self.measured.has_changed().is_ok();
        match &*self.measured.borrow() {
            Some(it) => {
                let open = it.findings.iter().filter(|finding| !finding.held);
                SandboxInfo {
                    kind: it.fence.tier().name().to_owned(),
                    not_held: open.map(|it| it.attempt.shows.to_owned()).collect(),
                }
            }
            None => SandboxInfo {
                kind: if is_pending { "pending" } else { "none" }.to_owned(),
                not_held: Vec::new(),
            },
        }
    }

    /// How a launch is started inside a policy. Keep what this returns until the command is over.
    pub(crate) async fn wrap(
        &self,
        session: &Session,
        mut launch: Launch,
        Held {
            mut policy,
            network,
            accepts_second,
        }: Held,
    ) -> Result<Inside, WireError> {
        let Policy::Fenced(rules) = &mut policy else {
            let none = Fence::new(Tier::C, PathBuf::new(), PathBuf::new());
            return Ok(Inside {
                fenced: none.wrap(launch, &policy)?,
                _way_out: None,
            });
        };
        let mut measured = self.measured.clone();
        let measured = timeout(MEASURED, measured.wait_for(Option::is_some)).await;
        let measured = measured.map_err(|_| WireError::Overloaded)?;
        let Some(measured) = measured.ok().and_then(|it| it.clone()) else {
            return Err(Refused::NoFence.into());
        };
        if measured.fence.tier() != Tier::A {
            // Only a view of the disk of its own hides anything, and clients are told what the second tier
            // does not hold.
            rules.hidden.clear();
            if accepts_second {
                rules.protected.clear();
            }
        }
        let mut way_out = None;
        if let Some(network) = network {
            let way = WayOut::open(&self.folder, &way_name())?;
            rules.network = Network::Proxy(way.socket());
            for (name, value) in egress::variables() {
                if !launch.env.iter().any(|(set, _)| *set == *name) {
                    launch.env.push((name.into(), value.into()));
                }
            }
            let proxy = Proxy::new(network, Arc::new(System), noted);
            let serving = tokio::spawn(way.serve(proxy));
            way_out = Some(Serving(serving.abort_handle()));
        }
        let wrap = move || measured.fence.wrap(launch, &policy);
        Ok(Inside {
            fenced: session.disk.run(&session.outgoing, wrap).await??,
            _way_out: way_out,
        })
    }
}

/// A command inside its fence.
pub(crate) struct Inside {
    pub(crate) fenced: Fenced,
    _way_out: Option<Serving>,
}

/// The proxy for one command.
struct Serving(AbortHandle);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a command is held by.
pub(crate) struct Held {
    policy: Policy,
    /// Whom it may reach through the proxy, if anyone.
    network: Option<egress::Rules>,
    /// Whether whoever runs the server has accepted that the second tier protects no names in what it lets be
    /// written. Without that it is refused.
    accepts_second: bool,
}

/// A name for the folder of one command's way out.
fn way_name() -> String {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    format!("raddle-out-{}-{number}", std::process::id())
}

/// Where a command wanted to go is worth a line; what it said there is not ours to know.
fn noted(it: Noted) {
    let Noted {
        target,
        allowed,
        why,
    } = it;
    tracing::info!(%target, allowed, why, "a command asked for the network");
}

/// What a command may do: what its client says, else what the configuration says, else read.
pub(crate) fn policy(
    wished: Option<&SandboxPolicy>,
    config: &State,
    cwd: &Path,
    own: &[PathBuf],
) -> Result<Held, WireError> {
    let configured;
    let wished = match wished {
        Some(wished) => wished,
        None => {
            configured = of_config(config)?;
            &configured
        }
    };
    let (mut rules, has_network) = match wished {
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox(_) => {
            return Ok(Held {
                policy: Policy::FullAccess,
                network: None,
                accepts_second: false,
            });
        }
        SandboxPolicy::ReadOnly(it) => (Rules::read_only(), it.network_access),
        SandboxPolicy::WorkspaceWrite(it) => (workspace(it, cwd)?, it.network_access),
        SandboxPolicy::Unrecognized(_) => {
            return Err(WireError::Refused(
                "the sandboxPolicy is none that is known; see permissionProfile/list".into(),
            ));
        }
    };
    // What is the server's own (keys, threads) is nobody else's, unless it is worked on by name.
    let is_named = |own: &&PathBuf| {
        let mut named = rules.write.iter().map(PathBuf::as_path);
        named.any(|path| path.starts_with(own))
    };
    rules.hidden = own.iter().filter(|own| !is_named(own)).cloned().collect();
    Ok(Held {
        policy: Policy::Fenced(rules),
        network: has_network.then(|| hosts(config)).transpose()?,
        accepts_second: config.text("sandbox_accept_tier") == Some("B"),
    })
}

/// Whom commands that may use the network can reach: those that `sandbox_network` lists, else all that is public.
fn hosts(config: &State) -> Result<egress::Rules, WireError> {
    let bad = |what: String| {
        WireError::Refused(format!("sandbox_network in the configuration: {what}").into())
    };
    let table = match config.value("sandbox_network") {
        None => return Ok(egress::Rules::all_public()),
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
    egress::Rules::parse(allow, deny).map_err(|it| bad(it.to_string()))
}

fn workspace(policy: &WorkspaceWriteSandboxPolicy, cwd: &Path) -> Result<Rules, WireError> {
    if cwd == Path::new("/") {
        return Err(WireError::Refused(
            "the workspace would be the whole disk; name the folder with cwd, or ask for dangerFullAccess".into(),
        ));
    }
    let mut folders = vec![cwd.to_owned()];
    for root in &policy.writable_roots {
        folders.push(crate::rooms::files::absolute(root)?);
    }
    let mut rules = Rules::workspace_write(folders);
    if !policy.exclude_slash_tmp {
        rules.scratch.push("/tmp".into());
    }
    if !policy.exclude_tmpdir_env_var
        && let Some(folder) = std::env::var_os("TMPDIR").map(PathBuf::from)
        && folder.is_absolute()
    {
        rules.scratch.push(folder);
    }
    Ok(rules)
}

/// The policy that the name of a profile stands for.
pub(crate) fn of_profile(id: &str) -> Result<SandboxPolicy, WireError> {
    Ok(match id {
        ":danger-full-access" => SandboxPolicy::DangerFullAccess,
        ":workspace" => SandboxPolicy::WorkspaceWrite(WorkspaceWriteSandboxPolicy {
            exclude_slash_tmp: false,
            exclude_tmpdir_env_var: false,
            network_access: false,
            writable_roots: Vec::new(),
        }),
        ":read-only" => SandboxPolicy::ReadOnly(ReadOnlySandboxPolicy {
            network_access: false,
        }),
        _ => {
            return Err(WireError::Refused(
                "the permissionProfile is none that permissionProfile/list shows".into(),
            ));
        }
    })
}

/// The policy that the configuration names, with the key names of its table.
fn of_config(config: &State) -> Result<SandboxPolicy, WireError> {
    let mode = config.text("sandbox_mode").unwrap_or("read-only");
    Ok(match mode {
        "danger-full-access" => SandboxPolicy::DangerFullAccess,
        "workspace-write" => {
            let table = config.value("sandbox_workspace_write");
            let value = |key: &str| table.and_then(|table| table.get(key));
            let flag = |key: &str| {
                value(key)
                    .and_then(toml::Value::as_bool)
                    .unwrap_or_default()
            };
            let roots = value("writable_roots").and_then(toml::Value::as_array);
            SandboxPolicy::WorkspaceWrite(WorkspaceWriteSandboxPolicy {
                exclude_slash_tmp: flag("exclude_slash_tmp"),
                exclude_tmpdir_env_var: flag("exclude_tmpdir_env_var"),
                network_access: flag("network_access"),
                writable_roots: roots
                    .into_iter()
                    .flatten()
                    .filter_map(|it| it.as_str().map(str::to_owned))
                    .collect(),
            })
        }
        "read-only" => SandboxPolicy::ReadOnly(ReadOnlySandboxPolicy {
            network_access: false,
        }),
        other => {
            return Err(WireError::Refused(
                format!("sandbox_mode is `{other}`, which is none that is known; set it to read-only, workspace-write or danger-full-access").into(),
            ));
        }
    })
}
