//! The fence around what a client runs.

use raddle_protocol::SandboxPolicy;
use raddle_sandbox::Launch;

use crate::wire_error::WireError;

/// What to start so that the program is held by this policy. There is no fence yet: who asks for none,
/// or has one around the server, is served, and nobody else. Nothing runs open in silence.
pub(crate) fn wrap(launch: Launch, policy: Option<&SandboxPolicy>) -> Result<Launch, WireError> {
    match policy {
        Some(SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox(_)) => Ok(launch),
        Some(
            SandboxPolicy::ReadOnly(_)
            | SandboxPolicy::WorkspaceWrite(_)
            | SandboxPolicy::Unrecognized(_),
        )
        | None => Err(WireError::NoFence),
    }
}
