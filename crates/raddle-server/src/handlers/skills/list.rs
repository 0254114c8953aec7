//! `skills/list`: the skills that apply in some folders.

use std::collections::HashSet;
use std::sync::Arc;

use raddle_config::skills::is_enabled;
use raddle_protocol::SkillsListResponse;
use raddle_protocol::methods::SkillsList;

use crate::call::Call;
use crate::services::files::{self, PathAdmission};
use crate::services::{ServerState, skills};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<SkillsList>) {
    if let Err(error) = files::check_cwds(&call.params.cwds) {
        return call.reply.error(error);
    }
    // `forceReload` needs no work: the folders are read every time.
    let config = match state.config_now().await {
        Ok(config) => config,
        Err(error) => return call.reply.error(error),
    };
    let is_observer = call.session.is_observer();
    // An observer may read workspaces, and no other files of the user.
    let shared = match is_observer {
        true => Vec::new(),
        false => state.skill_roots.folders(),
    };
    if !is_observer {
        let (watcher, threads) = (&state.watcher, &state.threads);
        state.skill_watches.set(&shared, watcher, threads).await;
    }
    let roots = state.skill_roots.clone();
    PathAdmission::on_disk(state, call, move |params, admission| {
        let mut folders = params.cwds;
        if folders.is_empty() {
            folders.push(std::env::current_dir()?.display().to_string());
        }
        for folder in folders.iter().filter(|_| is_observer) {
            admission.check(&std::path::absolute(folder)?)?;
        }
        let mut seen = HashSet::new();
        let of_plugins = match is_observer {
            true => Vec::new(),
            false => roots.of_plugins(),
        };
        let mut list = skills::SkillList::new(&shared, of_plugins, admission);
        for cwd in folders.iter().filter(|cwd| seen.insert(cwd.as_str())) {
            list.add_folder(cwd);
        }
        let mut data = list.entries();
        for skill in data.iter_mut().flat_map(|it| &mut it.skills) {
            skill.enabled = is_enabled(&config, &skill.name, &skill.path);
        }
        Ok(SkillsListResponse { data })
    })
    .await;
}
