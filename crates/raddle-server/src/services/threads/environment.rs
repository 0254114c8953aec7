//! Where a client wants a thread's tools to run.

use std::path::Path;

use raddle_protocol::TurnEnvironmentParams;

use crate::services::files::absolute;
use crate::wire_error::{WireError, shown};

/// The one environment there is: this machine.
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
    /// Reads the environments of a request, or its workspace folders. An environment names folders too: the same, if the
    /// request names both.
    pub(crate) fn of(
        environments: Option<&[TurnEnvironmentParams]>,
        cwd: Option<&str>,
        roots: Option<&[String]>,
    ) -> Result<Self, WireError> {
        let mut place = Self::default();
        let roots = match environments {
            None => roots,
            Some([]) => {
                place.no_environment = Some(true);
                roots
            }
            Some([one]) if one.environment_id == LOCAL => {
                absolute(&one.cwd)?;
                if cwd.is_some_and(|it| Path::new(it) != Path::new(&one.cwd)) {
                    return Err(contradiction("cwd"));
                }
                let own = one.runtime_workspace_roots.as_deref();
                if own.is_some() && roots.is_some() && own != roots {
                    return Err(contradiction("runtimeWorkspaceRoots"));
                }
                place.no_environment = Some(false);
                place.cwd = Some(one.cwd.clone());
                own.or(roots)
            }
            Some([one]) => {
                let id = shown(&one.environment_id);
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
        place.roots = roots.map(<[String]>::to_vec);
        Ok(place)
    }
}

/// That a request and its environment differ in a member that both have.
fn contradiction(member: &str) -> WireError {
    WireError::Contradiction {
        one: member.to_owned(),
        other: format!("environments[0].{member}"),
    }
}
