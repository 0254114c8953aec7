//! Changing how turns run, member by member, so that two clients who change different things both
//! get what they asked for.

use serde_json::Value;

use crate::{
    ApprovalPolicy, Limits, PermissionProfile, Recovery, Reviewer, Route, Sandbox, Settings,
};

/// Change how turns run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeSettings {
    /// What changes.
    pub change: SettingsChange,
    /// Who asks.
    pub principal: Option<String>,
}

macro_rules! settings_change {
    ($($member:ident: $type:ty,)*) => {
        /// What changes of the settings. What is absent stays as it is when the change is decided.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct SettingsChange {
            $(
                #[doc = concat!("See [`Settings::", stringify!($member), "`].")]
                pub $member: Option<$type>,
            )*
        }

        impl SettingsChange {
            /// The settings once this has changed them.
            pub fn applied_to(self, settings: &Settings) -> Settings {
                let mut settings = settings.clone();
                // A profile names the sandbox that it made. Another sandbox has no such name.
                if self.sandbox.is_some() {
                    settings.profile = None;
                }
                $(
                    if let Some(value) = self.$member {
                        settings.$member = value;
                    }
                )*
                settings
            }

            /// What leads from some settings to others.
            pub fn between(before: &Settings, after: &Settings) -> Self {
                let mut change = Self {
                    $($member: (before.$member != after.$member).then(|| after.$member.clone()),)*
                };
                if change.sandbox.is_some() {
                    change.profile = Some(after.profile.clone());
                }
                change
            }
        }
    };
}

settings_change! {
    cwd: String,
    roots: Vec<String>,
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
    nowhere: bool,
    window: Option<u64>,
    compact_above: Option<u64>,
    turn_budget: Limits,
    thread_budget: Limits,
    recovery: Option<Recovery>,
}
