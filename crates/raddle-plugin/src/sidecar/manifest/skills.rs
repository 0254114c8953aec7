//! The folders of skills of a manifest: `contributions.skills`.

use toml::Table;

use super::{KeyFault, strings};

/// Limit: folders of skills of one plugin; beyond it, the plugin is rejected.
const FOLDERS_MAX: usize = 16;

const KEY: &str = "contributions.skills";

/// Takes the folders of skills out of the contributions.
pub(super) fn take(contributions: &mut Table) -> Result<Option<Vec<String>>, KeyFault> {
    let folders = strings(contributions, "skills", "[\"skills\"]");
    let Some(folders) = folders.map_err(|fault| fault.inside("contributions"))? else {
        return Ok(None);
    };
    if folders.len() > FOLDERS_MAX {
        let problem = format!("has more than {FOLDERS_MAX} folders");
        return Err(KeyFault::new(KEY, problem, "join some of them"));
    }
    for (at, folder) in folders.iter().enumerate() {
        if !is_inside(folder) {
            let problem = format!("has the folder `{folder}`");
            let remedy = "name a folder inside the folder of the plugin, such as skills";
            return Err(KeyFault::new(KEY, problem, remedy));
        }
        if folders[..at].contains(folder) {
            let problem = format!("has the folder `{folder}` twice");
            return Err(KeyFault::new(KEY, problem, "remove one of them"));
        }
    }
    Ok(Some(folders))
}

/// Whether a path has one spelling, and leads to no place outside without a link.
fn is_inside(path: &str) -> bool {
    let is_name = |it: &str| !matches!(it, "" | "." | "..");
    path.split('/').all(is_name)
}
