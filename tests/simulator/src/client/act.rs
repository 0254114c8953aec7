//! Actions of clients, and their handling of messages.

use std::ops::Range;

use raddle_core::{
    AnswerRequest, Ask, CommandOutcome, HunkDecision, IdempotencyKey, Output, Refusal,
    RequestAnswer,
};
use raddle_protocol::Notification;
use support::Rng;

use super::{ClientRequest, Link, SimClient, State, ToClient, ToNode, UnansweredRequest};
use crate::check::{Check, broken, rejoin, requests};
use crate::client_view::{AnnouncedRecord, SentRequest, ViewError};
use crate::world::{AtNode, Next, SimWorld};

impl SimWorld {
    /// Performs a step of a client, and schedules the next.
    pub fn client_step(&mut self, thread: usize, client: usize) -> Check {
        if self.threads[thread].removed {
            return Ok(());
        }
        let wait = self.threads[thread].rng.range(10, 350);
        self.push(wait, Next::Step(thread, client));
        let (now, cuts) = (self.now, self.scenario.cuts);
        let healed = self.healed;
        let sim_thread = &mut self.threads[thread];
        let it = &mut sim_thread.clients[client];
        match it.state {
            State::Off => {
                self.join(thread, client);
                return Ok(());
            }
            State::Trying(since) => {
                if now > since + 2_500 {
                    it.state = State::Off;
                }
                return Ok(());
            }
            State::On => {}
        }
        self.check_open_requests(thread, client)?;
        let sim_thread = &mut self.threads[thread];
        let it = &mut sim_thread.clients[client];
        let silent = now > it.last_received_at + 6_000;
        if silent || (!healed && sim_thread.rng.percent(cuts)) {
            it.state = State::Off;
            it.link.count += 1;
            self.coverage.hit("connection cut");
            return Ok(());
        }
        self.repeat_requests(thread, client);
        let sim_thread = &mut self.threads[thread];
        if sim_thread.clients[client].unanswered.len() < 6 && sim_thread.rng.percent(40) {
            self.answer_something(thread, client);
        }
        let sim_thread = &mut self.threads[thread];
        let burst = if sim_thread.rng.percent(3) { 7 } else { 1 };
        for _ in 0..burst {
            if let Some(request) = self.next_request(thread, client) {
                let last = matches!(request, ClientRequest::Delete);
                self.send_request(thread, client, request);
                if last {
                    self.send_request(thread, client, ClientRequest::Rename(None));
                }
            }
        }
        Ok(())
    }

    /// I4, for a client that has received everything.
    fn check_open_requests(&self, thread: usize, client: usize) -> Check {
        let (sim_thread, head) = (&self.threads[thread], self.store.log(thread).head);
        let it = &sim_thread.clients[client];
        let node = &self.nodes[it.link.node];
        let live = node.live.get(&thread).filter(|live| {
            let here = node.alive && node.incarnation == it.link.incarnation;
            here && !live.busy && live.owner.stored() == head
        });
        let subscriber = live.and_then(|live| live.subscribers.get(&client));
        let is_live = subscriber.is_some_and(|it_| it_.link == it.link && it_.reader.is_none());
        if is_live && it.reached == head && it.inbound_until < self.now {
            requests::i4_all_are_sent(&sim_thread.oracle, it.open_requests.keys())?;
        }
        Ok(())
    }

    fn join(&mut self, thread: usize, client: usize) {
        let nodes = self.nodes.len();
        let sim_thread = &mut self.threads[thread];
        let node = match sim_thread.clients[client].moved.take() {
            Some(node) => node,
            None => sim_thread.rng.index(nodes),
        };
        let it = &mut sim_thread.clients[client];
        let count = it.link.count + 1;
        it.link = Link {
            node,
            incarnation: self.nodes[node].incarnation,
            count,
        };
        it.state = State::Trying(self.now);
        it.received_requests.clear();
        it.inbound_until = 0;
        it.outbound_until = 0;
        let subscribe = ToNode::Subscribe(it.cursor);
        self.send_to_node(thread, client, subscribe);
    }

    fn send_to_node(&mut self, thread: usize, client: usize, message: ToNode) {
        let sim_thread = &mut self.threads[thread];
        let wait = if sim_thread.rng.percent(3) {
            sim_thread.rng.range(50, 500)
        } else {
            sim_thread.rng.range(1, 12)
        };
        let it = &mut sim_thread.clients[client];
        let at = it.outbound_until.max(self.now + wait);
        it.outbound_until = at;
        let link = it.link;
        let at_node = AtNode::Message(thread, client, link, message);
        self.push_at(at, Next::Node(link.node, link.incarnation, at_node));
    }

    fn send_request(&mut self, thread: usize, client: usize, request: ClientRequest) {
        let now = self.now;
        let sim_thread = &mut self.threads[thread];
        let safe = !matches!(request, ClientRequest::Fork) && sim_thread.rng.percent(75);
        let it = &mut sim_thread.clients[client];
        it.next += 1;
        let number = it.next;
        let id = if safe && number > 1 && sim_thread.rng.percent(2) {
            number - 1
        } else {
            number
        };
        let key = safe.then(|| {
            let key = IdempotencyKey {
                principal: it.name.clone(),
                method: "do".to_owned(),
                id: id.to_string(),
            };
            (key, format!("{request:?}"))
        });
        // A request that must not be executed twice is not repeated without a key.
        let makes = matches!(
            request,
            ClientRequest::Turn { .. }
                | ClientRequest::Steer { .. }
                | ClientRequest::Inject { .. }
                | ClientRequest::Enqueue(_)
        );
        let once = makes && key.is_none();
        let times = if once { u32::MAX } else { 0 };
        it.unanswered.insert(
            number,
            UnansweredRequest {
                request: request.clone(),
                key: key.clone(),
                at: now,
                times,
            },
        );
        self.send_to_node(
            thread,
            client,
            ToNode::Request {
                number,
                request,
                key,
            },
        );
    }

    /// Repeats requests without a response, with the same key.
    fn repeat_requests(&mut self, thread: usize, client: usize) {
        let now = self.now;
        let it = &mut self.threads[thread].clients[client];
        let mut again = Vec::new();
        it.unanswered.retain(|number, pending| {
            let timeout = if matches!(pending.request, ClientRequest::Interrupt(_)) {
                4_000
            } else {
                900
            };
            if now < pending.at + timeout {
                return true;
            }
            pending.at = now;
            if pending.times >= 20 {
                return false;
            }
            pending.times += 1;
            again.push((*number, pending.request.clone(), pending.key.clone()));
            true
        });
        for (number, request, key) in again {
            self.coverage.hit("same request again");
            self.send_to_node(
                thread,
                client,
                ToNode::Request {
                    number,
                    request,
                    key,
                },
            );
        }
    }

    fn answer_something(&mut self, thread: usize, client: usize) {
        let sim_thread = &mut self.threads[thread];
        let it = &mut sim_thread.clients[client];
        let chosen = sim_thread.rng.index(it.open_requests.len());
        let Some(open_request) = it.open_requests.values().nth(chosen) else {
            return;
        };
        let answer = answer(&mut sim_thread.rng, open_request);
        let answer = AnswerRequest {
            request: open_request.number,
            by: it.name.clone(),
            answer,
        };
        self.send_request(thread, client, ClientRequest::Answer(Box::new(answer)));
    }

    /// Handles a message to a client.
    pub fn at_client(
        &mut self,
        thread: usize,
        client: usize,
        link: Link,
        message: ToClient,
    ) -> Check {
        let now = self.now;
        // A node that sent messages before the loss of power left out deltas of items that were
        // settled then. If that was lost, the deltas are back; the next owner completes those
        // items, and the view is whole again.
        let sender_lives = self.nodes[link.node].incarnation == link.incarnation;
        let sim_thread = &mut self.threads[thread];
        let checks = sender_lives && !sim_thread.removed;
        let it = &mut sim_thread.clients[client];
        if it.link != link {
            return Ok(());
        }
        it.last_received_at = now;
        match message {
            ToClient::Joined => {
                it.state = State::On;
                it.reached = it.cursor.unwrap_or_default();
            }
            ToClient::Snapshot(head, view) => {
                it.state = State::On;
                if head == self.store.log(thread).head && checks {
                    rejoin::i1_picture(&sim_thread.oracle, &view)?;
                }
                it.cursor = Some(head);
                it.reached = head;
                it.view = Some(*view);
                it.open_requests.clear();
            }
            ToClient::Notified(record, part) => {
                let (log, last) = (
                    self.store.log(thread),
                    part.end == record.notifications.len(),
                );
                if checks {
                    rejoin::i1_next(log, it.reached, record.seq)?;
                }
                let result = it.apply(&record, part);
                if checks {
                    rejoin::i1_makes_sense(result)?;
                }
                if last
                    && record.seq == log.head
                    && checks
                    && let Some(view) = &it.view
                {
                    rejoin::i1_picture(&sim_thread.oracle, view)?;
                }
            }
            ToClient::Ask(question) => {
                requests::i4_sent_once(
                    it.received_requests.insert(question.number),
                    question.number,
                )?;
                it.open_requests.insert(question.number, question);
            }
            ToClient::Reply(number, result) => return self.replied(thread, client, number, result),
            ToClient::Moved(node) => {
                it.state = State::Off;
                it.moved = Some(node);
            }
            ToClient::Closed => it.state = State::Off,
        }
        Ok(())
    }

    fn replied(
        &mut self,
        thread: usize,
        client: usize,
        number: u64,
        result: Result<CommandOutcome, Refusal>,
    ) -> Check {
        let it = &mut self.threads[thread].clients[client];
        match result {
            Ok(outcome) => {
                let pending = it.unanswered.remove(&number);
                let has_key = pending.is_some_and(|asking| asking.key.is_some());
                let before = it.outcomes.insert(number, outcome.clone());
                // The same request has the same outcome, however often it is sent.
                if has_key && before.is_some_and(|before| before != outcome) {
                    return broken(
                        "I3 no silent run",
                        format!("request {number} had two outcomes"),
                    );
                }
            }
            // These are worth a retry.
            Err(
                Refusal::OwnedElsewhere
                | Refusal::NotStored(_)
                | Refusal::OutcomeUnknown
                | Refusal::Busy,
            ) => {
                if it
                    .unanswered
                    .get(&number)
                    .is_some_and(|asking| asking.times >= 20)
                {
                    it.unanswered.remove(&number);
                }
            }
            Err(refusal) => {
                if matches!(refusal, Refusal::AlreadyResolved { .. }) {
                    self.coverage.hit("two answers");
                }
                self.threads[thread].clients[client]
                    .unanswered
                    .remove(&number);
            }
        }
        Ok(())
    }
}

impl SimClient {
    /// Applies some notifications of a record. The number comes with the last of them.
    fn apply(&mut self, record: &AnnouncedRecord, part: Range<usize>) -> Result<(), ViewError> {
        let last = part.end == record.notifications.len();
        if last {
            self.reached = record.seq;
            if !record.notifications.is_empty() {
                self.cursor = Some(record.seq);
            }
        }
        let view = self.view.get_or_insert_default();
        for notification in &record.notifications[part] {
            view.apply(notification)?;
            match notification {
                Notification::ServerRequestResolved(it) => {
                    self.open_requests
                        .retain(|_, request| request.id != it.request_id);
                }
                // For a tool that the client runs, the end of its item ends the request.
                Notification::ItemCompleted(_) => self.open_requests.retain(|_, request| {
                    !matches!(request.ask, Ask::ClientTool {}) || view.is_open(&request.item)
                }),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns an answer that is valid, most of the time.
fn answer(rng: &mut Rng, request: &SentRequest) -> RequestAnswer {
    match rng.below(20) {
        0 => return RequestAnswer::Cancel {},
        1..=3 => return RequestAnswer::Decline {},
        4 => {
            return RequestAnswer::Failed {
                message: "cannot".to_owned(),
            };
        }
        5 => {
            return RequestAnswer::Elicitation {
                body: serde_json::json!("odd"),
            };
        }
        _ => {}
    }
    match &request.ask {
        Ask::Patch(_) if !request.hunks.is_empty() && rng.percent(60) => {
            RequestAnswer::AcceptHunks {
                hunks: decisions(rng, &request.hunks),
            }
        }
        Ask::Command(_) if rng.percent(20) => RequestAnswer::AcceptWithRule {
            rule: serde_json::json!(["make"]),
        },
        Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_) if rng.percent(45) => {
            RequestAnswer::AcceptForSession {}
        }
        Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_) => RequestAnswer::Accept {},
        // Sometimes more than was requested.
        Ask::Permissions(_) => {
            let paths = ["/a", "/b", "/c"].into_iter().filter(|_| rng.percent(50));
            let paths: Vec<&str> = paths.collect();
            let scope = if rng.percent(40) { "session" } else { "turn" };
            let rights = serde_json::json!({
                "fileSystem": { "write": paths },
                "network": { "enabled": rng.percent(50) },
            });
            RequestAnswer::Permissions {
                granted: serde_json::json!({ "permissions": rights, "scope": scope }),
            }
        }
        Ask::Questions(_) => RequestAnswer::Answers {
            answers: [("q".to_owned(), vec!["so".to_owned()])].into(),
        },
        Ask::ClientTool {} => RequestAnswer::Tool {
            output: Output::text("seen"),
            content: serde_json::json!("seen"),
        },
        Ask::Elicitation(_) => RequestAnswer::Elicitation {
            body: serde_json::json!("this one"),
        },
    }
}

/// Returns decisions on some of these hunks: all accepted, all dropped, or each by itself.
fn decisions(rng: &mut Rng, hunks: &[String]) -> Vec<HunkDecision> {
    let accepted_percent = [100, 50, 50, 0][rng.index(4)];
    let mut decisions = Vec::new();
    for id in hunks {
        // A hunk without a decision is dropped.
        if accepted_percent < 100 && rng.percent(10) {
            continue;
        }
        let accept = rng.percent(accepted_percent);
        let more = rng.percent(30);
        decisions.push(HunkDecision {
            id: id.clone(),
            accept,
            comment: (more && !accept).then(|| format!("no {id}")),
            replacement: (more && accept).then(|| "other\n".to_owned()),
        });
    }
    decisions
}
