//! Work that nodes start and stop: model calls and tools.

use raddle_core::{BeginTurn, Command, Effect, ItemId, Purpose, TurnId};

use crate::check::Check;
use crate::client_request::environment_briefs;
use crate::hunks::WrittenHunks;
use crate::script::{CallScript, tool};
use crate::world::{AtNode, SimWorld, ToolRun};

impl SimWorld {
    /// Starts the work of an effect.
    pub fn start_work(&mut self, thread: usize, node: usize, effect: &Effect) -> Check {
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return Ok(());
        };
        let opening = live.opening;
        let sim_thread = &mut self.threads[thread];
        match effect {
            Effect::CallModel { call, .. } => {
                sim_thread.minted += 1;
                let script = CallScript {
                    prefix: format!("i{}", sim_thread.minted),
                    rng: &mut sim_thread.rng,
                    call: *call,
                    faults: !self.healed,
                    granted: live.owner.thread().granted(),
                };
                let steps = match live.owner.thread().purpose() {
                    Some(Purpose::Compact) => script.summary(),
                    _ => script.answer(),
                };
                let wait = steps.front().map_or(0, |step| step.0);
                live.model = Some((*call, steps));
                self.push_node(wait, node, AtNode::Model(thread, opening, *call));
            }
            Effect::RunTool { item, .. } => {
                let times = sim_thread.starts.entry(item.clone()).or_default();
                *times += 1;
                if !sim_thread.removed {
                    sim_thread.oracle.i3_started_in_the_world(item, *times)?;
                }
                let turn = live.owner.thread().turn();
                let mut items = turn.into_iter().flat_map(|turn| turn.items.iter());
                let Some(open) = items.find(|open| open.item.id == *item) else {
                    return Ok(());
                };
                let body = open.item.body.clone();
                let settings = live.owner.thread().settings();
                let cwd = open.hunk_cwd(settings);
                if !open.hunks().is_empty() && cwd != settings.cwd {
                    self.coverage
                        .hit("hunks written in another working directory");
                }
                let written = WrittenHunks::of(cwd, &body, open.hunks());
                if !sim_thread.removed {
                    sim_thread.oracle.i3_hunks_are_accepted(item, &written)?;
                }
                let steps = tool::running(&mut sim_thread.rng, item, &body, &written);
                let wait = steps.front().map_or(0, |step| step.0);
                let run = ToolRun {
                    steps,
                    body,
                    waits: false,
                    plan: 0,
                };
                live.tools.insert(item.clone(), run);
                self.push_node(wait, node, AtNode::Tool(thread, opening, item.clone(), 0));
            }
            Effect::BeginTurn { .. } => {
                let wait = sim_thread.rng.range(1, 400);
                self.push_node(wait, node, AtNode::Begin(thread, opening));
            }
            Effect::StopTool { item } => {
                let Some(run) = live.tools.get_mut(item) else {
                    return Ok(());
                };
                run.steps = tool::stopping(&mut sim_thread.rng, item, &run.body);
                run.waits = false;
                run.plan += 1;
                let plan = run.plan;
                let wait = run.steps.front().map_or(0, |step| step.0);
                self.push_node(
                    wait,
                    node,
                    AtNode::Tool(thread, opening, item.clone(), plan),
                );
            }
        }
        Ok(())
    }

    /// Stops work whose report is no longer needed. Some of its reports may be under way
    /// nevertheless.
    pub fn stop_work(&mut self, thread: usize, node: usize, effect: &Effect) {
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return;
        };
        let opening = live.opening;
        let rest = match effect {
            Effect::CallModel { call, .. } => {
                let run = live.model.take_if(|(running, _)| running == call);
                run.map(|(_, steps)| steps)
            }
            Effect::RunTool { item, .. } => {
                let run = live.tools.remove(item);
                if run.as_ref().is_some_and(|run| run.plan > 0) {
                    self.coverage.hit("tool stopped too slowly");
                }
                run.map(|run| run.steps)
            }
            // The start of a turn still arrives, and is refused.
            Effect::BeginTurn { .. } | Effect::StopTool { .. } => None,
        };
        let late = self.threads[thread].rng.index(3);
        for (_, command) in rest.into_iter().flatten().take(late) {
            let wait = self.threads[thread].rng.range(1, 100);
            self.push_node(wait, node, AtNode::Late(thread, opening, command));
        }
    }

    /// Starts the turn that needs no client.
    pub fn begin_turn(&mut self, thread: usize, node: usize, opening: u64) -> Check {
        if self.live(thread, node, opening).is_none() {
            return Ok(());
        }
        let sim_thread = &mut self.threads[thread];
        sim_thread.minted += 1;
        let begin = BeginTurn {
            turn: TurnId::from(format!("t{}", sim_thread.minted).as_str()),
            briefs: environment_briefs(sim_thread.minted),
        };
        if !self.report(thread, node, Command::BeginTurn(begin))? {
            self.push_node(5, node, AtNode::Begin(thread, opening));
        }
        Ok(())
    }

    /// Reports the next step of the model.
    pub fn model_step(&mut self, thread: usize, node: usize, opening: u64, call: u32) -> Check {
        let Some(live) = self.live(thread, node, opening) else {
            return Ok(());
        };
        let Some((running, steps)) = &mut live.model else {
            return Ok(());
        };
        if *running != call {
            return Ok(());
        }
        let Some((_, command)) = steps.pop_front() else {
            live.model = None;
            return Ok(());
        };
        let next = steps.front().map(|step| step.0);
        if !self.report(thread, node, command.clone())? {
            // Without capacity the report waits.
            if let Some(live) = self.live(thread, node, opening)
                && let Some((running, steps)) = &mut live.model
                && *running == call
            {
                steps.push_front((5, command));
                self.push_node(5, node, AtNode::Model(thread, opening, call));
            }
            return Ok(());
        }
        if let Some(wait) = next {
            self.push_node(wait, node, AtNode::Model(thread, opening, call));
        }
        Ok(())
    }

    /// Reports the next step of a tool.
    pub fn tool_step(
        &mut self,
        thread: usize,
        node: usize,
        opening: u64,
        item: &ItemId,
        plan: u32,
    ) -> Check {
        let Some(live) = self.live(thread, node, opening) else {
            return Ok(());
        };
        let Some(run) = live
            .tools
            .get_mut(item)
            .filter(|run| run.plan == plan && !run.waits)
        else {
            return Ok(());
        };
        let Some((_, command)) = run.steps.pop_front() else {
            live.tools.remove(item);
            return Ok(());
        };
        let next = run.steps.front().map(|step| step.0);
        let asks = matches!(command, Command::AskForTool(_));
        run.waits = asks;
        if !self.report(thread, node, command.clone())? {
            if let Some(live) = self.live(thread, node, opening)
                && let Some(run) = live.tools.get_mut(item).filter(|run| run.plan == plan)
            {
                run.waits = false;
                run.steps.push_front((5, command));
                self.push_node(5, node, AtNode::Tool(thread, opening, item.clone(), plan));
            }
            return Ok(());
        }
        match next {
            // It continues once its request is answered.
            Some(_) if asks => {}
            Some(wait) => {
                self.push_node(
                    wait,
                    node,
                    AtNode::Tool(thread, opening, item.clone(), plan),
                );
            }
            None => {}
        }
        Ok(())
    }

    /// Continues a tool whose request was answered.
    pub fn tool_is_answered(&mut self, thread: usize, node: usize, item: &ItemId) {
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return;
        };
        let opening = live.opening;
        if let Some(run) = live.tools.get_mut(item).filter(|run| run.waits) {
            run.waits = false;
            let plan = run.plan;
            self.push_node(5, node, AtNode::Tool(thread, opening, item.clone(), plan));
        }
    }
}
