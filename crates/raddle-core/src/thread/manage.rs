//! Commands that only record a fact and start no work.

use super::{Decision, Thread};
use crate::{
    Archive, ChangeMetadata, ChangeSettings, CountModelUse, DiffUpdated, Event, Git,
    MetadataChanged, ModelUsed, PlanUpdated, Refusal, Rename, Renamed, SettingsChanged,
    ThreadStarted, UpdatePlan, Warned,
};

pub(super) fn start_thread(it: ThreadStarted) -> Decision {
    vec![Event::ThreadStarted(it).into()].into()
}

pub(super) fn change_settings(thread: &Thread, it: ChangeSettings) -> Decision {
    let ChangeSettings { change, principal } = it;
    let settings = change.applied_to(&thread.settings);
    if settings == thread.settings {
        return Vec::new().into();
    }
    let changed = SettingsChanged {
        settings,
        principal,
    };
    vec![Event::SettingsChanged(changed).into()].into()
}

pub(super) fn rename(thread: &Thread, it: Rename) -> Decision {
    let Rename { name, principal } = it;
    if name == thread.name {
        return Vec::new().into();
    }
    vec![Event::Renamed(Renamed { name, principal }).into()].into()
}

pub(super) fn change_metadata(thread: &Thread, it: ChangeMetadata) -> Decision {
    let ChangeMetadata {
        branch,
        origin,
        sha,
        principal,
    } = it;
    let current_git = thread.identity.as_ref().and_then(|it| it.git.as_ref());
    let Git {
        branch: old_branch,
        origin: old_origin,
        sha: old_sha,
    } = current_git.cloned().unwrap_or_default();
    let git = Git {
        branch: branch.unwrap_or(old_branch),
        origin: origin.unwrap_or(old_origin),
        sha: sha.unwrap_or(old_sha),
    };
    let git = (git != Git::default()).then_some(git);
    if git.as_ref() == current_git {
        return Vec::new().into();
    }
    vec![Event::MetadataChanged(MetadataChanged { git, principal }).into()].into()
}

pub(super) fn archive(thread: &Thread, it: Archive) -> Result<Decision, Refusal> {
    if thread.turn.is_some() {
        return Err(Refusal::TurnRunning);
    }
    let Archive {
        archived,
        principal,
    } = it;
    Ok(match (thread.archived, archived) {
        (false, true) => vec![Event::Archived { principal }.into()].into(),
        (true, false) => vec![Event::Unarchived { principal }.into()].into(),
        (true, true) | (false, false) => Vec::new().into(),
    })
}

pub(super) fn update_plan(thread: &Thread, it: UpdatePlan) -> Result<Decision, Refusal> {
    let turn = thread.turn.as_ref().ok_or(Refusal::NoTurn)?;
    let updated = PlanUpdated {
        turn: turn.id.clone(),
        explanation: it.explanation,
        steps: it.steps,
    };
    Ok(vec![Event::PlanUpdated(updated).into()].into())
}

pub(super) fn update_diff(thread: &Thread, diff: String) -> Result<Decision, Refusal> {
    let turn = thread.turn.as_ref().ok_or(Refusal::NoTurn)?;
    let updated = DiffUpdated {
        turn: turn.id.clone(),
        diff,
        full: None,
    };
    Ok(vec![Event::DiffUpdated(updated).into()].into())
}

pub(super) fn count_model_use(thread: &Thread, it: CountModelUse) -> Result<Decision, Refusal> {
    let turn = thread.turn.as_ref().ok_or(Refusal::NoTurn)?;
    thread.open_item(&it.item).ok_or(Refusal::NoItem)?;
    let used = ModelUsed {
        turn: turn.id.clone(),
        item: it.item,
        model: it.model,
        provider: it.provider,
        usage: it.usage,
        estimated: it.estimated,
        nano_usd: it.price.map(|price| price.of(&it.usage)),
    };
    Ok(vec![Event::ModelUsed(used).into()].into())
}

pub(super) fn warn(message: String) -> Decision {
    vec![Event::Warned(Warned::of(message)).into()].into()
}
