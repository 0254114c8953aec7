//! The work of a thread that runs: model calls, tools, and the start of a turn.

use std::collections::BTreeMap;

use raddle_core::{Effect, ItemId, TurnId};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// The tasks that run effects of a thread. Finished ones are forgotten when the next one starts.
#[derive(Default)]
pub(super) struct RunningWork {
    tasks: BTreeMap<Effect, AbortHandle>,
    /// Running tools. Dropping the sender asks the tool to stop.
    stops: BTreeMap<ItemId, watch::Sender<()>>,
}

impl RunningWork {
    pub(super) fn insert(&mut self, effect: Effect, task: AbortHandle) {
        self.tasks.retain(|_, task| !task.is_finished());
        self.tasks.insert(effect, task);
    }

    /// Adds a tool, which stops when the sender is dropped.
    pub(super) fn insert_tool(
        &mut self,
        effect: Effect,
        task: AbortHandle,
        item: ItemId,
        stop: watch::Sender<()>,
    ) {
        self.insert(effect, task);
        self.stops.retain(|_, stop| !stop.is_closed());
        self.stops.insert(item, stop);
    }

    /// Asks a tool to stop. It still reports its end.
    pub(super) fn stop_tool(&mut self, item: &ItemId) {
        self.stops.remove(item);
    }

    /// Aborts an effect, which reports nothing more.
    pub(super) fn abort(&mut self, effect: &Effect) {
        if let Some(task) = self.tasks.remove(effect) {
            task.abort();
        }
    }

    /// Aborts the model call of a turn, and asks its tools to stop.
    pub(super) fn cancel_turn(&mut self, turn: &TurnId) {
        for (effect, task) in &self.tasks {
            if matches!(effect, Effect::CallModel { turn: called, .. } if called == turn) {
                task.abort();
            }
        }
        self.stops.clear();
    }

    pub(super) fn abort_all(&mut self) {
        for (_, task) in std::mem::take(&mut self.tasks) {
            task.abort();
        }
        self.stops.clear();
    }
}
