//! What goes out: answers, records and questions, and the reports of work that come in.

use std::rc::Rc;

use raddle_core::{Command, Cursor, Envelope, Out, Outcome, Refusal, Seq};

use super::ONE_ANSWER;
use crate::check::{Broken, Check, broken, rejoin, requests};
use crate::client::{Link, ToClient, Wish};
use crate::reach::refusal_name;
use crate::script::said_at;
use crate::world::{Asked, AtNode, Caller, Listener, Next, Trouble, World};

impl World {
    /// Every request has its answer once nothing is to be done, except who waits for a turn to stop.
    pub(super) fn all_are_answered(&self, thread: usize, node: usize) -> Check {
        let Some(live) = self.nodes[node].live.get(&thread) else {
            return Ok(());
        };
        let running = live.owner.thread().turn().map(|turn| &turn.id);
        for caller in live.tokens.values() {
            let waits = match &caller.asked {
                Asked::Wish(_, Wish::Interrupt(Some(turn))) => running == Some(turn),
                Asked::Wish(_, Wish::Interrupt(None)) => running.is_some(),
                Asked::Wish(..) | Asked::Subscribe(_) => false,
            };
            if !waits {
                return broken(
                    ONE_ANSWER,
                    format!("{:?} is left without one", caller.asked),
                );
            }
        }
        Ok(())
    }

    /// What goes out, goes out.
    pub(super) fn carry_out(&mut self, thread: usize, node: usize, outs: Vec<Out>) -> Check {
        for out in outs {
            match out {
                Out::Reply(token, result) => {
                    let live = self.nodes[node].live.get_mut(&thread);
                    match live.and_then(|live| live.tokens.remove(&token)) {
                        Some(caller) => self.reply(thread, caller, result)?,
                        None => return broken(ONE_ANSWER, "someone is answered twice"),
                    }
                }
                Out::Subscribed(settled) => self.subscribed(thread, node, settled)?,
                Out::Tell(told) => {
                    self.lanes[thread].oracle.i6_told_is_stored(&told)?;
                    let record = ToClient::Record(Rc::new(told.record));
                    self.broadcast(thread, node, &record);
                }
                Out::Ask(request) => {
                    requests::i4_asked(&self.lanes[thread].oracle, request)?;
                    self.broadcast(thread, node, &ToClient::Ask(request));
                }
                Out::Deliver(item, _, _) => self.tool_is_answered(thread, node, &item),
                Out::Start(effect) => self.start_work(thread, node, &effect)?,
                Out::Stop(effect) => self.stop_work(thread, node, &effect),
                Out::SaveBase(base) => {
                    let fold = &self.lanes[thread].oracle.fold;
                    if base.thread.head() == fold.head() && base.thread != *fold {
                        return broken("I8 base and tail make the whole", "a base is not the fold");
                    }
                    let wait = self.lanes[thread].rng.range(1, 50);
                    self.push(wait, Next::SaveBase(thread, base));
                }
            }
        }
        Ok(())
    }

    pub(super) fn reply(
        &mut self,
        thread: usize,
        caller: Caller,
        result: Result<Outcome, Refusal>,
    ) -> Check {
        let Caller {
            client,
            link,
            asked,
        } = caller;
        if let Err(refusal) = &result {
            self.reach.hit(refusal_name(refusal));
        }
        let Asked::Wish(number, wish) = asked else {
            self.tell_client(thread, client, link, ToClient::Closed);
            return Ok(());
        };
        let lane = &mut self.lanes[thread];
        if let Wish::Answer(answer) = &wish
            && !lane.gone
        {
            requests::i4_answer_told(&lane.oracle, answer, &result)?;
        }
        if let Ok(Outcome::Started(turn) | Outcome::Joined(turn)) = &result
            && !lane.gone
        {
            if lane.oracle.turns.iter().all(|(known, _)| known != turn) {
                return broken(
                    "I6 told is stored",
                    format!("a client is given {turn}, not stored"),
                );
            }
            lane.oracle.held.insert(turn.clone());
        }
        self.tell_client(thread, client, link, ToClient::Reply(number, result));
        Ok(())
    }

    pub(super) fn subscribed(
        &mut self,
        thread: usize,
        node: usize,
        settled: raddle_core::Settled,
    ) -> Check {
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return Ok(());
        };
        let (opening, stored) = (live.opening, live.owner.stored());
        let Some(Caller {
            client,
            link,
            asked: Asked::Subscribe(seen),
        }) = live.tokens.remove(&settled.token)
        else {
            return Ok(());
        };
        let whole = seen.is_none() || settled.cursor == Cursor::Expired;
        let snapshot = whole.then(|| Box::new(live.owner.thread().clone()));
        let asks: Vec<_> = live
            .owner
            .thread()
            .requests()
            .map(|(number, _)| number)
            .collect();
        let queue = (!whole).then(Vec::new);
        let listener = Listener {
            link,
            after: settled.after,
            head: settled.head,
            queue,
        };
        live.listeners.insert(client, listener);
        if let Some(seen) = seen {
            let oracle = &self.lanes[thread].oracle;
            if !self.lanes[thread].gone {
                rejoin::i1_cursor(oracle, self.store.log(thread), stored, seen, settled.cursor)?;
            }
            self.reach.hit(match settled.cursor {
                Cursor::Good => "cursor good",
                Cursor::Expired => "cursor expired",
            });
        }
        if let Some(snapshot) = snapshot {
            self.reach.hit("snapshot");
            self.tell_client(thread, client, link, ToClient::Snapshot(snapshot));
            for ask in asks {
                self.tell_client(thread, client, link, ToClient::Ask(ask));
            }
        } else {
            self.tell_client(thread, client, link, ToClient::Joined);
            self.push_node(1, node, AtNode::CatchUp(thread, opening, client, link));
        }
        Ok(())
    }

    /// A listener is sent a page of what it missed, from the journal.
    pub(super) fn catch_up(
        &mut self,
        thread: usize,
        node: usize,
        opening: u64,
        client: usize,
        link: Link,
    ) {
        const PAGE: usize = 6;
        if self.trouble(thread) == Some(Trouble::Unavailable) {
            return self.push_node(50, node, AtNode::CatchUp(thread, opening, client, link));
        }
        let Some(live) = self.nodes[node]
            .live
            .get_mut(&thread)
            .filter(|it| it.opening == opening)
        else {
            return;
        };
        let Some(listener) = live.listeners.get_mut(&client).filter(|it| it.link == link) else {
            return;
        };
        let missed = |seq: Seq| seq > listener.after && seq <= listener.head;
        let rows = self
            .store
            .log(thread)
            .rows
            .iter()
            .filter(|row| missed(row.record.seq));
        let page: Vec<_> = rows
            .take(PAGE)
            .map(|row| Rc::new(row.record.clone()))
            .collect();
        if let Some(last) = page.last() {
            listener.after = last.seq;
        }
        let mut messages: Vec<ToClient> = page.into_iter().map(ToClient::Record).collect();
        let more = messages.len() == PAGE;
        if !more {
            messages.extend(listener.queue.take().unwrap_or_default());
            let open = live.owner.thread().requests();
            messages.extend(open.map(|(number, _)| ToClient::Ask(number)));
        }
        for message in messages {
            self.tell_client(thread, client, link, message);
        }
        if more {
            let wait = self.lanes[thread].rng.range(1, 10);
            self.push_node(wait, node, AtNode::CatchUp(thread, opening, client, link));
        }
    }

    pub(super) fn broadcast(&mut self, thread: usize, node: usize, message: &ToClient) {
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return;
        };
        let mut now = Vec::new();
        for (client, listener) in &mut live.listeners {
            match &mut listener.queue {
                Some(queue) => queue.push(message.clone()),
                None => now.push((*client, listener.link)),
            }
        }
        for (client, link) in now {
            self.tell_client(thread, client, link, message.clone());
        }
    }

    /// A message sets out to a client; on one connection nothing overtakes.
    pub fn tell_client(&mut self, thread: usize, client: usize, link: Link, message: ToClient) {
        let lane = &mut self.lanes[thread];
        let wait = lane.rng.range(1, 12);
        let it = &mut lane.clients[client];
        if it.link != link {
            return;
        }
        let at = it.heard_until.max(self.now + wait);
        it.heard_until = at;
        self.push_at(at, Next::ToClient(thread, client, link, message));
    }

    /// A report of work comes in; whoever reports waits for room.
    pub fn report(&mut self, thread: usize, node: usize, command: Command) -> Result<bool, Broken> {
        let now = self.clock(node);
        let command = said_at(&command, now);
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return Ok(true);
        };
        if !live.busy
            && let Err(refusal) = live.owner.thread().decide(command.clone(), now)
        {
            self.reach.hit(refusal_name(&refusal));
        }
        let taken = live.owner.offer(Envelope::report(command)).is_ok();
        self.drive(thread, node)?;
        Ok(taken)
    }
}
