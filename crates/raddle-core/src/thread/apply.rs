//! Folding of a record into the state. Total: it cannot fail and looks nothing up.

use std::collections::BTreeMap;

use super::brief::digest;
use super::state::{
    Brief, CalledModel, Gap, Identity, LastTurn, ModelCall, OpenRequest, OpenTurn, Owner,
    SETTLED_MAX, SettledRequest, StopRequest, Thread, cuts_max, gaps_max, granted_max,
};
use super::{Goal, OpenItem, QueuedInput};
use crate::ports::preview;
use crate::{
    Ask, Delta, Event, Forked, Gate, ItemBody, ItemCompleted, ItemStarted, ItemStatus, ModelCalled,
    ModelEnd, ModelEnded, Owned, Record, RecordBody, RequestAnswer, RequestResolved, Resolution,
    Seq, Span, ThreadStarted, Timestamp, TurnEnded, TurnStarted,
};

/// Estimated bytes of text for one token.
const BYTES_PER_TOKEN: u64 = 4;

impl Thread {
    /// Folds a stored record into the state.
    pub fn apply(&mut self, record: &Record) {
        let status = self.status();
        let Record { seq, at, body } = record;
        self.head = *seq;
        match body {
            RecordBody::Delta(delta) => self.grow(delta),
            RecordBody::Event(event) => {
                if event.is_change() {
                    self.updated_at = *at;
                }
                self.apply_event(event, *seq, *at);
            }
        }
        if self.status() != status {
            self.status_at = *seq;
        }
    }

    fn apply_event(&mut self, event: &Event, seq: Seq, at: Timestamp) {
        match event {
            Event::ThreadStarted(it) => self.start(it, seq, at),
            Event::Owned(it) => self.own(it, seq),
            Event::Reserved(it) => {
                if let Some(owner) = &mut self.owner {
                    owner.reserved = it.to;
                }
            }
            Event::Released {} => {
                if let Some(owner) = &mut self.owner {
                    owner.released = true;
                }
            }
            Event::Forked(it) => {
                // An imported thread keeps its identity, and cursors into it stay valid.
                if !it.is_import() {
                    self.become_fork(it, seq, at);
                }
                if let Some(identity) = &mut self.identity {
                    identity.ephemeral = it.ephemeral;
                }
                self.set_lineage(it.lineage.clone());
                self.turns = it.turns;
                self.settings = it.settings.clone();
                // These belong to the other thread.
                self.keys.clear();
                self.granted.clear();
                self.rights = crate::Grant::default();
                self.goal = None;
                self.queue.clear();
                self.queue_rests = false;
            }
            Event::Reverted(it) => {
                self.set_lineage(it.lineage.clone());
                self.turns = it.turns;
                self.last_turn = None;
                self.context_tokens = it.context_tokens;
                self.cut(it.at, seq);
            }
            Event::SettingsChanged(it) => {
                // Rights were granted for this sandbox and these folders, and end with them.
                let before = &self.settings;
                let is_same = before.sandbox == it.settings.sandbox
                    && before.cwd == it.settings.cwd
                    && before.roots == it.settings.roots
                    && before.real_paths == it.settings.real_paths;
                if !is_same {
                    self.rights = crate::Grant::default();
                    self.with_turn(|turn| turn.rights = crate::Grant::default());
                }
                self.settings = it.settings.clone();
            }
            Event::Renamed(it) => self.name.clone_from(&it.name),
            Event::MetadataChanged(it) => {
                if let Some(identity) = &mut self.identity {
                    identity.git.clone_from(&it.git);
                }
            }
            Event::ItemsInjected(it) => {
                let bytes: u64 = it.items.iter().map(crate::InjectedItem::bytes).sum();
                self.context_tokens += bytes / BYTES_PER_TOKEN;
            }
            Event::GoalSet(it) => {
                let runs = self.turn.is_some();
                let goal = self.goal.get_or_insert_with(|| Goal::new(at));
                goal.set(it, runs, at);
                self.goal_at = seq;
            }
            Event::GoalCleared { .. } => {
                self.goal = None;
                self.goal_at = seq;
            }
            Event::InputQueued(it) => {
                let queued = QueuedInput::from(it);
                match self.queue.iter_mut().find(|old| old.item == it.item) {
                    Some(old) => *old = queued,
                    None => self.queue.push(queued),
                }
            }
            Event::InputUnqueued(it) => {
                self.queue.retain(|queued| queued.item != it.item);
                self.queue_rests &= !self.queue.is_empty();
            }
            Event::QueueReordered(it) => {
                let position =
                    |queued: &QueuedInput| it.items.iter().position(|id| *id == queued.item);
                self.queue.sort_by_key(position);
            }
            Event::Archived { .. } => self.archived = true,
            Event::Unarchived { .. } => self.archived = false,
            Event::Briefed(it) => {
                let digest = Some(digest(it));
                self.briefs.insert(it.topic, Brief { at: seq, digest });
            }
            Event::Deleted { .. } => self.deleted = true,
            Event::TurnStarted(it) => self.start_turn(it, seq, at),
            Event::InputAccepted(it) => {
                if let ItemBody::UserMessage(message) = &it.item.body
                    && self.preview.is_empty()
                {
                    self.preview = preview(message);
                }
                self.with_turn(|turn| turn.unread = true);
            }
            Event::ModelCalled(it) => self.call_model(it, seq, at),
            Event::ModelEnded(it) => self.end_model(it, at),
            Event::ModelUsed(it) => {
                if let Some(goal) = &mut self.goal {
                    goal.used(it.usage.total());
                }
                self.usage = self.usage.plus(&it.usage);
                self.charge_use(it);
            }
            Event::ItemStarted(it) => self.start_item(it, seq),
            Event::ItemSaved(it) => self.with_item(&it.item, |open| {
                let texts = it.texts.iter().map(|it| (it.part, it.text.clone()));
                open.texts = texts.collect();
                open.unsaved_bytes = 0;
                open.saved = Some(seq);
            }),
            Event::ToolStarted(it) => {
                if self.open_item(&it.item).is_some_and(OpenItem::is_tool) {
                    self.count_tool();
                }
                self.with_item(&it.item, |open| open.started = true);
            }
            Event::ItemCompleted(it) => self.complete_item(it),
            Event::RequestOpened(it) => {
                if it.ask == (Ask::ClientTool {}) {
                    self.count_tool();
                }
                self.next_request = crate::RequestNumber(it.request.0 + 1);
                let open = OpenRequest {
                    turn: it.turn.clone(),
                    item: it.item.clone(),
                    ask: it.ask.clone(),
                    opened_at: at,
                    expires_at: it.expires_at,
                    digest: it.digest.clone(),
                    files: it.files.clone(),
                    approve_on_timeout: it.approve_on_timeout,
                };
                self.requests.insert(it.request, open);
            }
            Event::RequestResolved(it) => self.settle(it),
            // Only for the user; no decision depends on them.
            Event::PlanUpdated(_) | Event::DiffUpdated(_) => {}
            Event::Warned(it) => self.note_warning(it),
            Event::InterruptAccepted(it) => self.with_turn(|turn| {
                turn.stopping = Some(StopRequest {
                    cause: it.cause.clone(),
                    at,
                });
                turn.retry_at = None;
            }),
            Event::TurnEnded(it) => self.end_turn(it, seq, at),
            Event::Compacted(_) => {
                // Input that arrived while the model summarised is not in its summary.
                let called = self.turn.as_ref().and_then(|turn| turn.model);
                // Nor are the notes on the environment, which stay valid.
                let known = self.briefs.values().filter(|it| it.digest.is_some());
                let briefs = known.map(|brief| Span {
                    from: brief.at,
                    until: Some(brief.at.next()),
                });
                let mut lineage: Vec<Span> = briefs.collect();
                lineage.sort_by_key(|span| span.from);
                lineage.push(Span {
                    from: called.map_or(seq, |model| model.at),
                    until: None,
                });
                self.lineage = lineage;
                self.context_tokens = 0;
                self.with_turn(|turn| {
                    turn.compacted = true;
                    // The question that exceeded the window is still to be answered.
                    turn.unread = turn.kind != crate::TurnKind::Compaction;
                });
            }
            Event::Remembered(it) => self.remember(it, at),
        }
    }

    fn start(&mut self, it: &ThreadStarted, seq: Seq, at: Timestamp) {
        self.identity = Some(Identity {
            thread: it.thread,
            tenant: it.tenant.clone(),
            principal: it.principal.clone(),
            source: it.source.clone(),
            originator: it.originator.clone(),
            label: it.label.clone(),
            version: it.version.clone(),
            ephemeral: it.ephemeral,
            paginated: it.paginated,
            git: it.git.clone(),
            forked_from: None,
            created_at: at,
        });
        self.settings = it.settings.clone();
        self.lineage = vec![Span {
            from: seq,
            until: None,
        }];
    }

    /// Gives a copied history the identity of the new thread.
    fn become_fork(&mut self, it: &Forked, seq: Seq, at: Timestamp) {
        if let Some(identity) = &mut self.identity {
            identity.thread = it.thread;
            identity.forked_from = Some(it.from);
            identity.principal.clone_from(&it.principal);
            identity.created_at = at;
        }
        // Subscribers received the earlier records as those of another thread.
        self.judged_from = seq;
        self.recency_at = Some(at);
        self.archived = false;
        self.usage = crate::Usage::default();
        self.begin_accounts();
    }

    /// Sets the lineage, and drops the notes on the environment that lie outside it.
    fn set_lineage(&mut self, lineage: Vec<Span>) {
        let counts = |at: Seq| lineage.iter().any(|span| span.holds(at));
        for brief in self.briefs.values_mut().filter(|it| !counts(it.at)) {
            brief.digest = None;
        }
        self.lineage = lineage;
    }

    /// Reverts the records from `at` on, including earlier reverts among them.
    fn cut(&mut self, at: Seq, seq: Seq) {
        self.cuts.retain(|cut| cut.from < at);
        self.cuts.push_back(Span {
            from: at,
            until: Some(seq),
        });
        if self.cuts.len() > cuts_max()
            && let Some(oldest) = self.cuts.pop_front()
        {
            self.cuts_from = oldest.until.unwrap_or(seq);
        }
    }

    fn own(&mut self, it: &Owned, seq: Seq) {
        let lost = self.owner.as_ref().is_some_and(|owner| !owner.released);
        if lost {
            self.with_turn(|turn| turn.owners_lost += 1);
        }
        if self.owner.is_some() && it.found.next() < seq {
            self.gaps.push_back(Gap {
                after: it.found,
                before: seq,
            });
            if self.gaps.len() > gaps_max()
                && let Some(oldest) = self.gaps.pop_front()
            {
                self.judged_from = oldest.before;
            }
        }
        self.owner = Some(Owner {
            epoch: it.epoch,
            node: it.node.clone(),
            reserved: it.reserved,
            released: false,
            level: it.level,
        });
    }

    fn start_turn(&mut self, it: &TurnStarted, seq: Seq, at: Timestamp) {
        self.turns += 1;
        self.turn_at = seq;
        self.queue_rests = false;
        if let Some(goal) = &mut self.goal {
            goal.turn_began();
        }
        self.recency_at = Some(at);
        self.turn = Some(OpenTurn {
            id: it.turn.clone(),
            kind: it.kind,
            started_at: at,
            root: it.root.clone(),
            output_schema: it.output_schema.clone(),
            items: Vec::new(),
            model: None,
            calls: 0,
            attempts: 0,
            retries: 0,
            fallen: 0,
            overflows: 0,
            unread: false,
            retry_at: None,
            broke_at: at,
            failed: None,
            stopping: None,
            owners_lost: 0,
            compacted: false,
            answer: None,
            reviewing: false,
            reviewed: it.reviewed.clone(),
            rights: crate::Grant::default(),
            spent: super::budget::BudgetUsage::default(),
            charged_from: OpenTurn::charged_since(it.kind, at),
        });
    }

    fn call_model(&mut self, it: &ModelCalled, seq: Seq, at: Timestamp) {
        self.calls = it.call;
        self.asked = CalledModel {
            model: it.model.clone(),
            provider: it.provider.clone(),
        };
        self.with_turn(|turn| {
            turn.model = Some(ModelCall {
                call: it.call,
                purpose: it.purpose,
                at: seq,
            });
            turn.calls += 1;
            turn.charged_from.get_or_insert(at);
            turn.attempts = it.attempt;
            turn.unread = false;
            turn.retry_at = None;
            if it.purpose == crate::Purpose::Compact {
                turn.compacted = false;
            }
        });
    }

    fn end_model(&mut self, it: &ModelEnded, at: Timestamp) {
        self.charge(it);
        if let Some(usage) = it.usage {
            if let Some(goal) = &mut self.goal {
                goal.used(usage.total());
            }
            self.usage = self.usage.plus(&usage);
            // The estimate for a failed call is less exact about the context than the call before
            // it.
            if !it.estimated || matches!(it.end, ModelEnd::Done {}) {
                self.last_usage = usage;
                // A call that summarised the history read the old one; the new one is short.
                if self.purpose() != Some(crate::Purpose::Compact) {
                    self.context_tokens = usage.total();
                }
            }
        }
        self.with_turn(|turn| {
            let purpose = turn.model.take().map(|model| model.purpose);
            let compacted = purpose == Some(crate::Purpose::Compact) && turn.compacted;
            match &it.end {
                ModelEnd::Done {} => {
                    turn.attempts = 0;
                    if purpose == Some(crate::Purpose::Answer) {
                        turn.overflows = 0;
                    }
                }
                ModelEnd::Rerouted { .. } => {
                    turn.attempts = 0;
                    turn.fallen += 1;
                    turn.unread |= !compacted;
                }
                ModelEnd::Overflowed { .. } => {
                    turn.attempts = 0;
                    // The call that summarises must get less of the history.
                    let least = match purpose {
                        Some(crate::Purpose::Compact) => 2,
                        _ => 1,
                    };
                    turn.overflows = (turn.overflows + 1).max(least);
                    turn.compacted = false;
                    turn.unread = true;
                }
                ModelEnd::Broke { retry_at, .. } => {
                    turn.retry_at = Some(*retry_at);
                    turn.broke_at = at;
                    turn.retries += 1;
                    turn.unread |= !compacted;
                }
                ModelEnd::Failed { error } => turn.failed = Some(error.clone()),
                // If the turn continues, the input of this call must be sent again, unless the call
                // was to summarise and did.
                ModelEnd::Cancelled {} | ModelEnd::OwnerLost {} => turn.unread |= !compacted,
            }
        });
    }

    fn start_item(&mut self, it: &ItemStarted, seq: Seq) {
        let call = self.calls;
        let asks_about_hunks =
            it.gate == Some(Gate::Approval) && matches!(it.item.body, ItemBody::Patch(_));
        let hunk_cwd = asks_about_hunks.then(|| self.settings.cwd.clone());
        self.with_turn(|turn| {
            turn.items.push(OpenItem {
                item: it.item.clone(),
                texts: BTreeMap::new(),
                call,
                gate: it.gate,
                ready: it.gate == Some(Gate::Open),
                started: false,
                digest: it.ruling.as_ref().map(|ruling| ruling.digest.clone()),
                hunks: Vec::new(),
                hunk_cwd,
                unsaved_bytes: 0,
                began: seq,
                saved: None,
            });
        });
    }

    fn complete_item(&mut self, it: &ItemCompleted) {
        self.with_turn(|turn| {
            turn.items.retain(|open| open.item.id != it.item.id);
            // The model must read text of hooks, even where it wanted to end the turn.
            if it.item.call.is_some() || matches!(it.item.body, ItemBody::HookPrompt(_)) {
                turn.unread = true;
            }
            match it.item.body {
                ItemBody::ReviewEntered(_) => turn.reviewing = true,
                ItemBody::ReviewLeft(_) => turn.reviewing = false,
                _ => {}
            }
            if it.item.status == ItemStatus::Completed
                && matches!(it.item.body, ItemBody::AgentMessage(_))
            {
                turn.answer = Some(Box::new(it.item.clone()));
            }
        });
    }

    fn grow(&mut self, delta: &Delta) {
        self.with_item(&delta.item, |open| {
            let text = open.texts.entry(delta.part).or_default();
            if delta.offset > text.len() as u64 {
                // Deltas of earlier text are deleted already, and this one soon is: the event that
                // holds its text follows.
                return;
            }
            // Skips text that was folded in before.
            let known = (text.len() as u64).saturating_sub(delta.offset);
            let known = usize::try_from(known).unwrap_or(usize::MAX);
            if let Some(rest) = delta.text.get(known..) {
                text.push_str(rest);
                open.unsaved_bytes += rest.len() as u64;
            }
        });
    }

    fn settle(&mut self, it: &RequestResolved) {
        let Some(open) = self.requests.remove(&it.request) else {
            return;
        };
        let answer = match &it.resolution {
            Resolution::Answered { answer, .. } => Some(&**answer),
            Resolution::Expired {} | Resolution::Withdrawn {} => None,
        };
        let approved = answer.is_some_and(RequestAnswer::approves);
        let session = answer == Some(&RequestAnswer::AcceptForSession {});
        if session {
            open.digest.into_iter().for_each(|it| self.grant(it));
            open.files.into_iter().for_each(|it| self.grant(it));
        }
        if let Some(grant) = &it.grant {
            // A tool that may write around a folder could replace the folder with a link, so the
            // folder's own right is dropped.
            self.rights.remove_covered(grant);
            match grant.session {
                true => self.rights.add(grant),
                false => self.with_turn(|turn| turn.rights.add(grant)),
            }
        }
        if approved {
            let any = crate::bugs::planted(crate::bugs::Bug::YesForAll);
            let as_a_whole = crate::bugs::planted(crate::bugs::Bug::DroppedHunkWritten);
            self.with_turn(|turn| {
                let items = turn.items.iter_mut();
                let approved_items = items.filter(|it| any || it.item.id == open.item);
                for item in approved_items.filter(|it| it.gate == Some(Gate::Approval)) {
                    item.ready = true;
                    if let Some(RequestAnswer::AcceptHunks { hunks }) = answer
                        && !as_a_whole
                    {
                        item.hunks.clone_from(hunks);
                    }
                }
            });
        }
        self.settled.push_back(SettledRequest {
            request: it.request,
            how: (&it.resolution).into(),
            is_announced: !matches!(open.ask, Ask::ClientTool {}),
        });
        if self.settled.len() > SETTLED_MAX {
            self.settled.pop_front();
        }
    }

    fn grant(&mut self, digest: String) {
        self.granted.retain(|old| *old != digest);
        self.granted.push_back(digest);
        if self.granted.len() > granted_max() {
            self.granted.pop_front();
        }
    }

    fn end_turn(&mut self, it: &TurnEnded, seq: Seq, at: Timestamp) {
        if let Some(turn) = self.turn.take() {
            let is_well = matches!(it.end, crate::TurnEnd::Completed {});
            self.queue_rests = !is_well && !self.queue.is_empty();
            let ms = at.since(turn.started_at);
            self.count_time(turn.charged_ms(at));
            if let Some(goal) = &mut self.goal
                && goal.turn_ended(&it.end, ms, at)
            {
                self.goal_at = seq;
            }
            self.last_turn = Some(LastTurn {
                id: turn.id,
                root: turn.root,
                end: it.end.clone(),
                started_at: turn.started_at,
                ended_at: at,
                answer: turn.answer,
            });
        }
    }

    fn with_turn(&mut self, change: impl FnOnce(&mut OpenTurn)) {
        if let Some(turn) = &mut self.turn {
            change(turn);
        }
    }

    fn with_item(&mut self, id: &crate::ItemId, change: impl FnOnce(&mut OpenItem)) {
        let items = self.turn.as_mut().map(|turn| &mut turn.items);
        let open = items.and_then(|items| items.iter_mut().find(|open| open.item.id == *id));
        if let Some(open) = open {
            change(open);
        }
    }
}
