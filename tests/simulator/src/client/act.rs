//! What clients do and what they make of what they hear.

use std::ops::Range;

use raddle_core::{
    AnswerRequest, Ask, CommandOutcome, IdempotencyKey, Output, Refusal, RequestAnswer,
};
use raddle_protocol::Notification;

use super::{ClientRequest, Link, SimClient, State, ToClient, ToNode, UnansweredRequest};
use crate::check::{Check, broken, rejoin, requests};
use crate::client_view::{ToldRecord, ViewError};
use crate::rng::Rng;
use crate::world::{AtNode, Next, SimWorld};

impl SimWorld {
    /// A client does something, and will do something again.
    pub fn client_step(&mut self, thread: usize, client: usize) -> Check {
        if self.lanes[thread].gone {
            return Ok(());
        }
        let wait = self.lanes[thread].rng.range(10, 350);
        self.push(wait, Next::Step(thread, client));
        let (now, cuts) = (self.now, self.scenario.cuts);
        let healed = self.healed;
        let lane = &mut self.lanes[thread];
        let it = &mut lane.clients[client];
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
        self.all_are_asked(thread, client)?;
        let lane = &mut self.lanes[thread];
        let it = &mut lane.clients[client];
        let silent = now > it.last_heard + 6_000;
        if silent || (!healed && lane.rng.percent(cuts)) {
            it.state = State::Off;
            it.link.count += 1;
            self.reach.hit("connection cut");
            return Ok(());
        }
        self.ask_again(thread, client);
        let lane = &mut self.lanes[thread];
        if lane.clients[client].asking.len() < 6 && lane.rng.percent(40) {
            self.answer_something(thread, client);
        }
        let lane = &mut self.lanes[thread];
        let burst = if lane.rng.percent(3) { 7 } else { 1 };
        for _ in 0..burst {
            if let Some(wish) = self.wish(thread, client) {
                let last = matches!(wish, ClientRequest::Delete);
                self.ask(thread, client, wish);
                if last {
                    self.ask(thread, client, ClientRequest::Rename(None));
                }
            }
        }
        Ok(())
    }

    /// I4, for a client that has heard all there is to hear.
    fn all_are_asked(&self, thread: usize, client: usize) -> Check {
        let (lane, head) = (&self.lanes[thread], self.store.log(thread).head);
        let it = &lane.clients[client];
        let node = &self.nodes[it.link.node];
        let live = node.live.get(&thread).filter(|live| {
            let here = node.alive && node.life == it.link.life;
            here && !live.busy && live.owner.stored() == head
        });
        let listener = live.and_then(|live| live.subscribers.get(&client));
        let hears = listener.is_some_and(|it_| it_.link == it.link && it_.reader.is_none());
        if hears && it.reached == head && it.heard_until < self.now {
            requests::i4_all_are_asked(&lane.oracle, it.asked.keys())?;
        }
        Ok(())
    }

    fn join(&mut self, thread: usize, client: usize) {
        let nodes = self.nodes.len();
        let lane = &mut self.lanes[thread];
        let node = match lane.clients[client].moved.take() {
            Some(node) => node,
            None => lane.rng.index(nodes),
        };
        let it = &mut lane.clients[client];
        let count = it.link.count + 1;
        it.link = Link {
            node,
            life: self.nodes[node].life,
            count,
        };
        it.state = State::Trying(self.now);
        it.put.clear();
        it.heard_until = 0;
        it.said_until = 0;
        let subscribe = ToNode::Subscribe(it.seen);
        self.tell_node(thread, client, subscribe);
    }

    fn tell_node(&mut self, thread: usize, client: usize, message: ToNode) {
        let lane = &mut self.lanes[thread];
        let wait = if lane.rng.percent(3) {
            lane.rng.range(50, 500)
        } else {
            lane.rng.range(1, 12)
        };
        let it = &mut lane.clients[client];
        let at = it.said_until.max(self.now + wait);
        it.said_until = at;
        let link = it.link;
        let at_node = AtNode::Message(thread, client, link, message);
        self.push_at(at, Next::Node(link.node, link.life, at_node));
    }

    fn ask(&mut self, thread: usize, client: usize, wish: ClientRequest) {
        let now = self.now;
        let lane = &mut self.lanes[thread];
        let safe = !matches!(wish, ClientRequest::Fork) && lane.rng.percent(75);
        let it = &mut lane.clients[client];
        it.next += 1;
        let number = it.next;
        let id = if safe && number > 1 && lane.rng.percent(2) {
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
            (key, format!("{wish:?}"))
        });
        // What must not happen twice is not asked twice without a key.
        let makes = matches!(
            wish,
            ClientRequest::Turn { .. }
                | ClientRequest::Steer { .. }
                | ClientRequest::Inject { .. }
                | ClientRequest::Enqueue(_)
        );
        let once = makes && key.is_none();
        let times = if once { u32::MAX } else { 0 };
        it.asking.insert(
            number,
            UnansweredRequest {
                request: wish.clone(),
                key: key.clone(),
                at: now,
                times,
            },
        );
        self.tell_node(thread, client, ToNode::Request { number, wish, key });
    }

    /// What was not answered is asked again, with the same key.
    fn ask_again(&mut self, thread: usize, client: usize) {
        let now = self.now;
        let it = &mut self.lanes[thread].clients[client];
        let mut again = Vec::new();
        it.asking.retain(|number, asking| {
            let patience = if matches!(asking.request, ClientRequest::Interrupt(_)) {
                4_000
            } else {
                900
            };
            if now < asking.at + patience {
                return true;
            }
            asking.at = now;
            if asking.times >= 20 {
                return false;
            }
            asking.times += 1;
            again.push((*number, asking.request.clone(), asking.key.clone()));
            true
        });
        for (number, wish, key) in again {
            self.reach.hit("same request again");
            self.tell_node(thread, client, ToNode::Request { number, wish, key });
        }
    }

    fn answer_something(&mut self, thread: usize, client: usize) {
        let lane = &mut self.lanes[thread];
        let it = &mut lane.clients[client];
        let chosen = lane.rng.index(it.asked.len());
        let Some(asked) = it.asked.values().nth(chosen) else {
            return;
        };
        let answer = answer(&mut lane.rng, &asked.ask);
        let answer = AnswerRequest {
            request: asked.number,
            by: it.name.clone(),
            answer,
        };
        self.ask(thread, client, ClientRequest::Answer(Box::new(answer)));
    }

    /// What a client hears.
    pub fn at_client(
        &mut self,
        thread: usize,
        client: usize,
        link: Link,
        message: ToClient,
    ) -> Check {
        let now = self.now;
        // What a node sent before the power went left out deltas of items that were settled then. If
        // that was lost, they are back; the next owner completes those items, and all is whole again.
        let sender_lives = self.nodes[link.node].life == link.life;
        let lane = &mut self.lanes[thread];
        let checks = sender_lives && !lane.gone;
        let it = &mut lane.clients[client];
        if it.link != link {
            return Ok(());
        }
        it.last_heard = now;
        match message {
            ToClient::Joined => {
                it.state = State::On;
                it.reached = it.seen.unwrap_or_default();
            }
            ToClient::Snapshot(head, believed) => {
                it.state = State::On;
                if head == self.store.log(thread).head && checks {
                    rejoin::i1_picture(&lane.oracle, &believed)?;
                }
                it.seen = Some(head);
                it.reached = head;
                it.believes = Some(*believed);
                it.asked.clear();
            }
            ToClient::Notified(words, part) => {
                let (log, last) = (
                    self.store.log(thread),
                    part.end == words.notifications.len(),
                );
                if checks {
                    rejoin::i1_next(log, it.reached, words.seq)?;
                }
                let heard = it.hear(&words, part);
                if checks {
                    rejoin::i1_makes_sense(heard)?;
                }
                if last
                    && words.seq == log.head
                    && checks
                    && let Some(believed) = &it.believes
                {
                    rejoin::i1_picture(&lane.oracle, believed)?;
                }
            }
            ToClient::Ask(question) => {
                requests::i4_put_once(it.put.insert(question.number), question.number)?;
                it.asked.insert(question.number, question);
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
        let it = &mut self.lanes[thread].clients[client];
        match result {
            Ok(outcome) => {
                let asking = it.asking.remove(&number);
                let keyed = asking.is_some_and(|asking| asking.key.is_some());
                let before = it.outcomes.insert(number, outcome.clone());
                // The same request has the same outcome, however often it is sent.
                if keyed && before.is_some_and(|before| before != outcome) {
                    return broken(
                        "I3 no silent run",
                        format!("request {number} had two outcomes"),
                    );
                }
            }
            // These are worth another try.
            Err(Refusal::OwnedElsewhere | Refusal::NotStored(_) | Refusal::Busy) => {
                if it
                    .asking
                    .get(&number)
                    .is_some_and(|asking| asking.times >= 20)
                {
                    it.asking.remove(&number);
                }
            }
            Err(refusal) => {
                if matches!(refusal, Refusal::AlreadyResolved { .. }) {
                    self.reach.hit("two answers");
                }
                self.lanes[thread].clients[client].asking.remove(&number);
            }
        }
        Ok(())
    }
}

impl SimClient {
    /// Some of the words for a record. What they are about is folded; the number comes with the last of them.
    fn hear(&mut self, words: &ToldRecord, part: Range<usize>) -> Result<(), ViewError> {
        let last = part.end == words.notifications.len();
        if last {
            self.reached = words.seq;
            if !words.notifications.is_empty() {
                self.seen = Some(words.seq);
            }
        }
        let believes = self.believes.get_or_insert_default();
        for told in &words.notifications[part] {
            believes.hear(told)?;
            match told {
                Notification::ServerRequestResolved(it) => {
                    self.asked.retain(|_, asked| asked.id != it.request_id);
                }
                // Of a tool that a client runs, the end of its item says that nobody waits for it.
                Notification::ItemCompleted(_) => self.asked.retain(|_, asked| {
                    !matches!(asked.ask, Ask::ClientTool {}) || believes.is_open(&asked.item)
                }),
                _ => {}
            }
        }
        Ok(())
    }
}

/// An answer that fits, most of the time.
fn answer(rng: &mut Rng, ask: &Ask) -> RequestAnswer {
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
    match ask {
        Ask::Command(_) if rng.percent(20) => RequestAnswer::AcceptWithRule {
            rule: serde_json::json!(["make"]),
        },
        Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_) if rng.percent(45) => {
            RequestAnswer::AcceptForSession {}
        }
        Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_) => RequestAnswer::Accept {},
        // Now and then more than was asked for.
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
