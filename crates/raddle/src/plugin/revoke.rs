//! `raddle plugin revoke`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use raddle_config::Configuration;
use raddle_plugin::PermissionStore;

use super::{install, report};
use crate::cli::PluginRevoke;
use crate::home::Home;

pub(super) fn run(config: &Configuration, args: &PluginRevoke) -> Result<ExitCode> {
    let id = &args.id;
    install::installed(config, id)?;
    let store = PermissionStore::of(&Home::find()?.state, id);
    let revoked = store.revoke(args.permission.as_deref())?;
    match (revoked.is_empty(), &args.permission) {
        (true, Some(permission)) => bail!(
            "the permission `{permission}` of the plugin `{id}` is not approved; `raddle plugin \
             list` prints those that are"
        ),
        (true, None) => report(&format!("no permission of the plugin `{id}` is approved")),
        (false, _) => report(&format!(
            "revoked {} of the plugin `{id}`",
            revoked.join(", ")
        )),
    }
    Ok(ExitCode::SUCCESS)
}
