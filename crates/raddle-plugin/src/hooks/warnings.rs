//! Warnings about trusted hooks and plugins that do not run, such as those that have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use raddle_config::{Hook, HookSet, HookTrust};
use raddle_core::ThreadId;
use raddle_core::ports::{HookCall, HookEvent};

use crate::sidecar::PluginRegistry;

/// Limit: threads whose warnings of changed hooks and plugins are remembered; beyond it, they are
/// given once more.
const THREADS_MAX: usize = 1_000;

/// The warnings that each thread has received, and that still hold.
#[derive(Default)]
pub(super) struct ChangeWarnings(Mutex<BTreeMap<ThreadId, BTreeSet<String>>>);

impl ChangeWarnings {
    /// Returns the warnings that the thread of an event has not received. Only the beginning of a
    /// turn has any.
    pub(super) fn take(
        &self,
        call: &HookCall,
        set: &HookSet,
        plugins: &PluginRegistry,
    ) -> Vec<String> {
        let begins_turn = matches!(
            call.event,
            HookEvent::SessionStart | HookEvent::UserPromptSubmit
        );
        if !begins_turn {
            return Vec::new();
        }
        let hooks = set.hooks.iter();
        let hooks = hooks.filter(|it| it.enabled && it.trust() == HookTrust::Modified);
        let plugins = plugins.not_running();
        let plugins = plugins.iter().map(|(id, why)| plugin_warning(id, why));
        self.unseen(call.thread, hooks.map(hook_warning).chain(plugins))
    }

    /// Returns those of the warnings that hold now which the thread has not received. Each is the
    /// identity of a change, and the text.
    fn unseen(
        &self,
        thread: ThreadId,
        current: impl Iterator<Item = (String, String)>,
    ) -> Vec<String> {
        let current: BTreeMap<String, String> = current.collect();
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = threads.remove(&thread).unwrap_or_default();
        if current.is_empty() {
            return Vec::new();
        }
        if threads.len() >= THREADS_MAX {
            threads.clear();
        }
        threads.insert(thread, current.keys().cloned().collect());
        drop(threads);
        let unseen = current.into_iter().filter(|(key, _)| !seen.contains(key));
        unseen.map(|(_, text)| text).collect()
    }
}

fn hook_warning(hook: &Hook) -> (String, String) {
    let text = format!(
        "The hook `{}` on {} does not run: it has changed since you trusted it. Read what it does; \
         then `raddle hooks list` numbers it, and `raddle hooks trust NUMBER` trusts it.",
        hook.key,
        hook.event.name()
    );
    (format!("{} {}", hook.key, hook.current_hash), text)
}

fn plugin_warning(id: &str, why: &str) -> (String, String) {
    let text = format!("The plugin `{id}` does not run: {why}.");
    (format!("plugin {id}"), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_warned_once_of_each_change() {
        let warnings = ChangeWarnings::default();
        let (first, second) = (ThreadId::mint(), ThreadId::mint());
        let unseen = |thread, keys: &[&str]| {
            let current = keys.iter().map(|it| ((*it).to_owned(), (*it).to_owned()));
            warnings.unseen(thread, current)
        };
        for (thread, current, expected) in [
            (first, &["a 1"][..], &["a 1"][..]),
            (first, &["a 1"], &[]),
            (first, &["a 1", "b 1"], &["b 1"]),
            (second, &["a 1"], &["a 1"]),
            // It changed again.
            (first, &["a 2", "b 1"], &["a 2"]),
            // The user trusted it, and it changed after that.
            (first, &[], &[]),
            (first, &["a 2"], &["a 2"]),
        ] {
            assert_eq!(unseen(thread, current), expected, "{current:?}");
        }
        for _ in 0..2 * THREADS_MAX {
            assert_eq!(unseen(ThreadId::mint(), &["a 1"]), ["a 1"]);
        }
        let threads = warnings.0.lock().expect("warnings");
        assert!(threads.len() <= THREADS_MAX);
    }
}
