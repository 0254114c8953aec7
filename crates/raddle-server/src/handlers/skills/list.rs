//! `skills/list`: the skills that apply in some folders.

use std::sync::Arc;

use raddle_protocol::SkillsListResponse;
use raddle_protocol::methods::SkillsList;

use crate::call::Call;
use crate::rooms::{Rooms, skills};

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<SkillsList>) {
    // `forceReload` needs no work: the folders are looked at every time.
    let user = rooms.options.paths.skills.clone();
    call.on_disk(move |params| {
        let mut folders = params.cwds;
        if folders.is_empty() {
            folders.push(std::env::current_dir()?.display().to_string());
        }
        let data = folders
            .iter()
            .map(|cwd| skills::in_folder(&user, cwd))
            .collect();
        Ok(SkillsListResponse { data })
    });
}
