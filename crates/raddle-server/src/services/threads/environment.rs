//! The environment in which a client wants a thread's tools to run.

use std::path::Path;

use raddle_protocol::TurnEnvironmentParams;

use crate::services::files::absolute;
use crate::wire_error::{WireError, quoted};

/// The only environment: this machine.
const LOCAL: &str = "local";

/// The environment that a request names. An absent member keeps its value.
#[derive(Debug, Default)]
pub(crate) struct RequestedEnvironment {
    pub(crate) cwd: Option<String>,
    pub(crate) roots: Option<Vec<String>>,
    /// Whether there is none, so that the agent has no tools of its own.
    pub(crate) no_environment: Option<bool>,
}

impl RequestedEnvironment {
    /// Parses the environments of a request, or its workspace folders. An environment also names
    /// folders: they must be equal, if the request has both.
    pub(crate) fn of(
        environments: Option<&[TurnEnvironmentParams]>,
        cwd: Option<&str>,
        roots: Option<&[String]>,
    ) -> Result<Self, WireError> {
        let mut requested = Self::default();
        let roots = match environments {
            None => roots,
            Some([]) => {
                requested.no_environment = Some(true);
                roots
            }
            Some([environment]) if environment.environment_id == LOCAL => {
                absolute(&environment.cwd)?;
                if cwd.is_some_and(|it| Path::new(it) != Path::new(&environment.cwd)) {
                    return Err(contradiction("cwd"));
                }
                let environment_roots = environment.runtime_workspace_roots.as_deref();
                if environment_roots.is_some() && roots.is_some() && environment_roots != roots {
                    return Err(contradiction("runtimeWorkspaceRoots"));
                }
                requested.no_environment = Some(false);
                requested.cwd = Some(environment.cwd.clone());
                environment_roots.or(roots)
            }
            Some([environment]) => {
                let id = quoted(&environment.environment_id);
                let what = format!("unknown environment `{id}`; the only one here is `{LOCAL}`");
                return Err(WireError::Refused(what.into()));
            }
            Some(_) => {
                let what = "a thread has one environment here; name one, or none with []";
                return Err(WireError::Refused(what.into()));
            }
        };
        for root in roots.into_iter().flatten() {
            absolute(root)?;
        }
        requested.roots = roots.map(<[String]>::to_vec);
        Ok(requested)
    }
}

/// Returns the error for a member in which a request and its environment differ.
fn contradiction(member: &str) -> WireError {
    super::contradiction(member, &format!("environments[0].{member}"))
}
