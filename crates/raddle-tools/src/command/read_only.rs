//! Programs that the server runs for itself in the folder of a thread. They only read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use raddle_core::{Sandbox, Settings};
use raddle_sandbox::Launch;

use super::confinement::{check_folder, confinement_of};
use super::run::{confine, variables};
use crate::tool_call_error::ToolCallError;
use crate::tool_deps::ToolDeps;

/// Runs a program in a sandbox that reads what the thread may read, writes nothing and has no
/// network. Returns its output: all of it, or at least one byte more than `bytes_max`. Fails if the
/// program does. Dropping the future ends the program.
pub(crate) async fn read_only_output(
    inner: &ToolDeps,
    settings: &Settings,
    words: &[&str],
    set: &[(&str, &str)],
    bytes_max: usize,
) -> Result<Vec<u8>, ToolCallError> {
    let path = inner.path.get().await;
    let settings = Settings {
        sandbox: Sandbox::ReadOnly {
            roots: Vec::new(),
            network: false,
            reads: settings.sandbox.reads().map(<[String]>::to_vec),
        },
        ..settings.clone()
    };
    let mut words = words.iter().map(Into::into);
    let launch = Launch {
        program: words.next().unwrap_or_default(),
        args: words.collect(),
        cwd: PathBuf::from(settings.real(&settings.cwd)),
        env: variables(path, BTreeMap::new(), set),
    };
    let (own, operator) = (inner.own.clone(), inner.operator.clone());
    let plan = tokio::task::spawn_blocking(move || {
        check_folder(&settings)?;
        confinement_of(&settings, &own, &*operator)
    });
    let confinement = plan.await.map_err(ToolCallError::new)??;
    let (process, _) = confine(&inner.sandbox, launch, confinement, Duration::ZERO).await?;
    let output = inner
        .launcher
        .confined_output(&process.confined, bytes_max)
        .await;
    output.map_err(ToolCallError::new)
}
