//! The sandboxes that requests and the configuration name, in the form that a thread stores.

use raddle_config::permissions::SandboxChoice;
use raddle_core::Sandbox;
use raddle_protocol::{NetworkAccess, SandboxPolicy};

use crate::services::files::absolute;
use crate::wire_error::WireError;

/// Returns the sandbox of a mode or a profile. Rejects paths that no system can have.
pub(crate) fn of_choice(choice: &SandboxChoice) -> Result<Sandbox, WireError> {
    for folder in choice.sandbox.folders() {
        absolute(folder)?;
    }
    Ok(choice.sandbox.clone())
}

/// Converts a policy to the form that a thread stores. Rejects an unknown one.
pub(crate) fn stored(policy: &SandboxPolicy) -> Result<Sandbox, WireError> {
    Ok(match policy {
        SandboxPolicy::DangerFullAccess => Sandbox::FullAccess,
        SandboxPolicy::ReadOnly(it) => Sandbox::ReadOnly {
            roots: Vec::new(),
            network: it.network_access,
            reads: None,
        },
        SandboxPolicy::ExternalSandbox(it) => Sandbox::External {
            network: it.network_access == NetworkAccess::Enabled,
        },
        SandboxPolicy::WorkspaceWrite(it) => {
            for root in &it.writable_roots {
                absolute(root)?;
            }
            Sandbox::WorkspaceWrite {
                roots: it.writable_roots.clone(),
                network: it.network_access,
                without_tmp: it.exclude_slash_tmp,
                without_tmpdir: it.exclude_tmpdir_env_var,
                reads: None,
            }
        }
        SandboxPolicy::Unrecognized(_) => {
            let known = SandboxPolicy::KNOWN.join(", ");
            let what = format!("unknown type of sandboxPolicy; use one of {known}");
            return Err(WireError::Refused(what.into()));
        }
    })
}
