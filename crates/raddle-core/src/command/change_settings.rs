//! Changes of settings, member by member, so that two clients can change different members at once.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::record::replace_paths;
use crate::{
    ApprovalPolicy, PermissionProfile, Recovery, Reviewer, Route, Sandbox, Settings, SpendLimits,
};

/// Changes the settings of later turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeSettings {
    /// Members that change, with their new values.
    pub change: SettingsChange,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

impl SettingsChange {
    /// Returns the change of all folders of these settings to themselves.
    pub fn of_folders(settings: &Settings) -> Self {
        Self {
            cwd: Some(settings.cwd.clone()),
            roots: Some(settings.roots.clone()),
            sandbox: Some(settings.sandbox.clone()),
            profile: Some(settings.profile.clone()),
            ..Self::default()
        }
    }

    /// Returns all folders that the change names.
    pub fn folders(&self) -> impl Iterator<Item = &String> {
        let of_change = self.cwd.iter().chain(self.roots.iter().flatten());
        of_change.chain(self.sandbox.iter().flat_map(Sandbox::folders))
    }

    /// Returns the same change with other paths in place of some folders.
    #[must_use]
    pub fn with_paths(mut self, paths: &BTreeMap<String, String>) -> Self {
        replace_paths(
            self.cwd.iter_mut().chain(self.roots.iter_mut().flatten()),
            paths,
        );
        self.sandbox = self.sandbox.map(|it| it.with_paths(paths));
        self
    }
}

macro_rules! settings_change {
    ($($member:ident: $type:ty,)*) => {
        /// Change of settings. An absent member keeps the value it has when the change is decided.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct SettingsChange {
            $(
                #[doc = concat!("See [`Settings::", stringify!($member), "`].")]
                pub $member: Option<$type>,
            )*
        }

        impl SettingsChange {
            /// Returns the settings with this change applied.
            pub fn applied_to(self, settings: &Settings) -> Settings {
                let mut settings = settings.clone();
                let known = std::mem::take(&mut settings.real_paths);
                // A profile names the sandbox that it defines. A different sandbox invalidates that
                // name.
                if self.sandbox.is_some() {
                    settings.profile = None;
                }
                $(
                    if let Some(value) = self.$member {
                        settings.$member = value;
                    }
                )*
                for (folder, real) in known {
                    settings.real_paths.entry(folder).or_insert(real);
                }
                keep_links(&mut settings);
                settings
            }

            /// Returns the change that leads from `before` to `after`.
            pub fn between(before: &Settings, after: &Settings) -> Self {
                let mut change = Self {
                    $($member: (before.$member != after.$member).then(|| after.$member.clone()),)*
                };
                if change.sandbox.is_some() {
                    change.profile = Some(after.profile.clone());
                }
                if let Some(real_paths) = &mut change.real_paths {
                    for folder in before.real_paths.keys() {
                        real_paths.entry(folder.clone()).or_insert_with(|| folder.clone());
                    }
                }
                change
            }
        }
    };
}

settings_change! {
    cwd: String,
    roots: Vec<String>,
    real_paths: BTreeMap<String, String>,
    model: Option<String>,
    provider: Option<String>,
    fallback: Vec<Route>,
    effort: Option<String>,
    summary: Option<String>,
    tier: Option<String>,
    personality: Option<String>,
    base_instructions: Option<String>,
    developer_instructions: Option<String>,
    approval: ApprovalPolicy,
    reviewer: Reviewer,
    sandbox: Sandbox,
    profile: Option<PermissionProfile>,
    client_tools: Vec<Value>,
    no_environment: bool,
    variables: BTreeMap<String, String>,
    window: Option<u64>,
    compact_above: Option<u64>,
    turn_budget: SpendLimits,
    thread_budget: SpendLimits,
    recovery: Option<Recovery>,
}

/// Keeps only the real paths of folders that the settings name and that are symbolic links.
fn keep_links(settings: &mut Settings) {
    let mut real_paths = std::mem::take(&mut settings.real_paths);
    real_paths.retain(|folder, real| folder != real && settings.folders().any(|it| it == folder));
    settings.real_paths = real_paths;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(cwd: &str, root: &str, real_paths: &[(&str, &str)]) -> Settings {
        Settings {
            cwd: cwd.to_owned(),
            roots: vec![root.to_owned()],
            real_paths: map(real_paths),
            ..Settings::default()
        }
    }

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(folder, real): &(&str, &str)| ((*folder).to_owned(), (*real).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn real_paths_are_kept_for_the_folders_that_stay() {
        let before = settings("/l", "/r", &[("/l", "/a"), ("/r", "/b")]);
        for (cwd, real_paths, expected) in [
            // A change of another setting.
            (None, None, &[("/l", "/a"), ("/r", "/b")][..]),
            (Some("/n"), Some(&[("/n", "/n")][..]), &[("/r", "/b")]),
            (
                Some("/n"),
                Some(&[("/n", "/c")]),
                &[("/n", "/c"), ("/r", "/b")],
            ),
            // Named again: the link points elsewhere now, or is gone.
            (
                Some("/l"),
                Some(&[("/l", "/c")]),
                &[("/l", "/c"), ("/r", "/b")],
            ),
            (Some("/l"), Some(&[("/l", "/l")]), &[("/r", "/b")]),
        ] {
            let change = SettingsChange {
                cwd: cwd.map(str::to_owned),
                real_paths: real_paths.map(map),
                ..SettingsChange::default()
            };
            let after = change.applied_to(&before);
            assert_eq!(after.real_paths, map(expected), "{cwd:?} {real_paths:?}");
            let change = SettingsChange::between(&before, &after);
            assert_eq!(change.applied_to(&before), after, "{cwd:?} {real_paths:?}");
        }
    }
}
