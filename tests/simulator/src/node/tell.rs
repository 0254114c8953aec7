//! What goes out: answers, records and questions, and the reports of work that come in.

use std::rc::Rc;

use raddle_core::{
    Announcement, Command, CommandOutcome, Envelope, Refusal, RequestNumber, Thread, WriterAction,
};

use super::ONE_ANSWER;
use crate::check::{BrokenPromise, Check, broken, requests};
use crate::client::{ClientRequest, Link, ToClient};
use crate::client_view::{PutRequest, ToldRecord};
use crate::coverage::refusal_name;
use crate::script::said_at;
use crate::world::{Caller, CallerRequest, Next, SimSubscriber, SimWorld};

impl SimWorld {
    /// Every request has its answer once nothing is to be done, except who waits for a turn to stop.
    pub(super) fn all_are_answered(&self, thread: usize, node: usize) -> Check {
        let Some(live) = self.nodes[node].live.get(&thread) else {
            return Ok(());
        };
        let running = live.owner.thread().turn().map(|turn| &turn.id);
        for caller in live.tokens.values() {
            let waits = match &caller.request {
                CallerRequest::Request(_, ClientRequest::Interrupt(Some(turn))) => {
                    running == Some(turn)
                }
                CallerRequest::Request(_, ClientRequest::Interrupt(None)) => running.is_some(),
                CallerRequest::Request(..) | CallerRequest::Subscribe(_) => false,
            };
            if !waits {
                return broken(
                    ONE_ANSWER,
                    format!("{:?} is left without one", caller.request),
                );
            }
        }
        Ok(())
    }

    /// What goes out, goes out.
    pub(super) fn carry_out(
        &mut self,
        thread: usize,
        node: usize,
        outs: Vec<WriterAction>,
    ) -> Check {
        for out in outs {
            match out {
                WriterAction::Reply(token, result) => {
                    let live = self.nodes[node].live.get_mut(&thread);
                    match live.and_then(|live| live.tokens.remove(&token)) {
                        Some(caller) => self.reply(thread, caller, result)?,
                        None => return broken(ONE_ANSWER, "someone is answered twice"),
                    }
                }
                WriterAction::Subscribed(settled) => self.subscribed(thread, node, settled)?,
                WriterAction::Tell(told) => {
                    self.lanes[thread].oracle.i6_told_is_stored(&told)?;
                    self.announce(thread, node, told);
                }
                WriterAction::Ask(request) => {
                    requests::i4_asked(&self.lanes[thread].oracle, request)?;
                    let live = self.nodes[node].live.get(&thread);
                    let question = live.map(|live| question(live.owner.thread(), request));
                    if let Some(question) = question.transpose()? {
                        self.broadcast(thread, node, &ToClient::Ask(question));
                    }
                }
                WriterAction::Deliver(item, _, _) => self.tool_is_answered(thread, node, &item),
                WriterAction::Start(effect) => self.start_work(thread, node, &effect)?,
                WriterAction::Stop(effect) => self.stop_work(thread, node, &effect),
                WriterAction::SaveBase(base) => {
                    let fold = &self.lanes[thread].oracle.fold;
                    if base.thread.head() == fold.head() && base.thread != *fold {
                        return broken("I8 base and tail make the whole", "a base is not the fold");
                    }
                    let wait = self.lanes[thread].rng.range(1, 50);
                    self.push(wait, Next::SaveBase(thread, base));
                }
            }
        }
        self.some_fall_behind(thread, node);
        Ok(())
    }

    pub(super) fn reply(
        &mut self,
        thread: usize,
        caller: Caller,
        result: Result<CommandOutcome, Refusal>,
    ) -> Check {
        let Caller {
            client,
            link,
            request: asked,
        } = caller;
        if let Err(refusal) = &result {
            self.reach.hit(refusal_name(refusal));
        }
        let CallerRequest::Request(number, wish) = asked else {
            self.tell_client(thread, client, link, ToClient::Closed);
            return Ok(());
        };
        let lane = &mut self.lanes[thread];
        if let (ClientRequest::Revert(Some(at)), Err(Refusal::NoSuchTurn)) = (&wish, &result)
            && lane.oracle.is_cut(*at)
        {
            self.reach.hit("revert into what was taken back refused");
        }
        if let ClientRequest::Answer(answer) = &wish
            && !lane.gone
        {
            requests::i4_answer_told(&lane.oracle, answer, &result)?;
        }
        if let Ok(CommandOutcome::Started { turn } | CommandOutcome::Joined { turn }) = &result
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

    /// A record is told to everyone who listens, as the wire says it.
    fn announce(&mut self, thread: usize, node: usize, told: Announcement) {
        let words = ToldRecord {
            seq: told.record.seq,
            notifications: told.notifications,
        };
        let all = 0..words.notifications.len();
        self.broadcast(thread, node, &ToClient::Notified(Rc::new(words), all));
    }

    fn broadcast(&mut self, thread: usize, node: usize, message: &ToClient) {
        let Some(live) = self.nodes[node].live.get(&thread) else {
            return;
        };
        let mut now = Vec::new();
        // Whoever is behind comes to it by reading.
        let hears = |(_, it): &(&usize, &SimSubscriber)| it.reader.is_none();
        for (client, listener) in live.subscribers.iter().filter(hears) {
            now.push((*client, listener.link));
        }
        for (client, link) in now {
            self.tell_in_pieces(thread, client, link, message.clone());
        }
    }

    /// The words for one record may come apart on the way, and a connection may break between them.
    pub(super) fn tell_in_pieces(
        &mut self,
        thread: usize,
        client: usize,
        link: Link,
        message: ToClient,
    ) {
        if let ToClient::Notified(words, all) = &message
            && all.len() > 1
            && self.lanes[thread].rng.percent(30)
        {
            let middle = self.lanes[thread].rng.index(all.len() - 1) + 1;
            let (first, rest) = (0..middle, middle..all.end);
            let wait = self.lanes[thread].rng.below(60);
            let words = words.clone();
            self.tell_client(
                thread,
                client,
                link,
                ToClient::Notified(words.clone(), first),
            );
            self.lanes[thread].clients[client].heard_until += wait;
            return self.tell_client(thread, client, link, ToClient::Notified(words, rest));
        }
        self.tell_client(thread, client, link, message);
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
    pub fn report(
        &mut self,
        thread: usize,
        node: usize,
        command: Command,
    ) -> Result<bool, BrokenPromise> {
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

/// An open request, as it is put to a client.
pub(super) fn question(
    thread: &Thread,
    request: RequestNumber,
) -> Result<Rc<PutRequest>, BrokenPromise> {
    let open = thread.requests().find(|(number, _)| *number == request);
    let words = raddle_core::ask(thread, request);
    match (open, words) {
        (Some((number, open)), Some((id, ..))) => Ok(Rc::new(PutRequest {
            number,
            id,
            item: open.item.clone(),
            ask: open.ask.clone(),
        })),
        _ => Err(BrokenPromise {
            promise: "I4 requests",
            how: format!("there are no words for request {request}"),
        }),
    }
}
