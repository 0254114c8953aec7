//! Outgoing responses, records and requests, and incoming reports of work.

use std::rc::Rc;

use raddle_core::{
    Announcement, Command, CommandOutcome, Envelope, Refusal, RequestNumber, Thread, WriterAction,
};

use super::ONE_ANSWER;
use crate::check::{BrokenPromise, Check, broken, requests};
use crate::client::{ClientRequest, Link, ToClient};
use crate::client_view::{AnnouncedRecord, SentRequest};
use crate::coverage::refusal_name;
use crate::script::with_absolute_times;
use crate::world::{Caller, CallerRequest, Next, SimSubscriber, SimWorld};

impl SimWorld {
    /// Checks that every request has its response once nothing is left to do, except callers that
    /// wait for a turn to stop.
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

    /// Performs the actions of the core's writer.
    pub(super) fn perform(
        &mut self,
        thread: usize,
        node: usize,
        actions: Vec<WriterAction>,
    ) -> Check {
        for action in actions {
            match action {
                WriterAction::Reply(token, result) => {
                    let live = self.nodes[node].live.get_mut(&thread);
                    match live.and_then(|live| live.tokens.remove(&token)) {
                        Some(caller) => self.reply(thread, caller, result)?,
                        None => return broken(ONE_ANSWER, "a caller is answered twice"),
                    }
                }
                WriterAction::Subscribed(start) => self.subscribed(thread, node, start)?,
                WriterAction::Announce(announcement) => {
                    self.threads[thread]
                        .oracle
                        .i6_sent_is_stored(&announcement)?;
                    self.announce(thread, node, announcement);
                }
                WriterAction::Ask(request) => {
                    requests::i4_sent_is_stored(&self.threads[thread].oracle, request)?;
                    let live = self.nodes[node].live.get(&thread);
                    let question = live.map(|live| sent_request(live.owner.thread(), request));
                    if let Some(question) = question.transpose()? {
                        self.broadcast(thread, node, &ToClient::Ask(question));
                    }
                }
                WriterAction::Deliver(item, _, _) => self.tool_is_answered(thread, node, &item),
                WriterAction::Start(effect) => self.start_work(thread, node, &effect)?,
                WriterAction::Stop(effect) => self.stop_work(thread, node, &effect),
                WriterAction::SaveBase(base) => {
                    let fold = &self.threads[thread].oracle.fold;
                    if base.thread.head() == fold.head() && base.thread != *fold {
                        return broken("I8 base and tail make the whole", "a base is not the fold");
                    }
                    let wait = self.threads[thread].rng.range(1, 50);
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
            request,
        } = caller;
        if let Err(refusal) = &result {
            self.coverage.hit(refusal_name(refusal));
        }
        let CallerRequest::Request(number, client_request) = request else {
            self.send_to_client(thread, client, link, ToClient::Closed);
            return Ok(());
        };
        let sim_thread = &mut self.threads[thread];
        if let (ClientRequest::Revert(Some(at)), Err(Refusal::NoSuchTurn)) =
            (&client_request, &result)
            && sim_thread.oracle.is_cut(*at)
        {
            self.coverage.hit("revert into what was taken back refused");
        }
        if let ClientRequest::Answer(answer) = &client_request
            && !sim_thread.removed
        {
            requests::i4_answer_result(&sim_thread.oracle, answer, &result)?;
        }
        if let Ok(CommandOutcome::Started { turn } | CommandOutcome::Joined { turn }) = &result
            && !sim_thread.removed
        {
            if sim_thread
                .oracle
                .turns
                .iter()
                .all(|(known, _)| known != turn)
            {
                return broken(
                    "I6 sent is stored",
                    format!("a client is given {turn}, not stored"),
                );
            }
            sim_thread.oracle.known_turns.insert(turn.clone());
        }
        self.send_to_client(thread, client, link, ToClient::Reply(number, result));
        Ok(())
    }

    /// Sends a record's notifications to every live subscriber.
    fn announce(&mut self, thread: usize, node: usize, announcement: Announcement) {
        let record = AnnouncedRecord {
            seq: announcement.record.seq,
            notifications: announcement.notifications,
        };
        let all = 0..record.notifications.len();
        self.broadcast(thread, node, &ToClient::Notified(Rc::new(record), all));
    }

    fn broadcast(&mut self, thread: usize, node: usize, message: &ToClient) {
        let Some(live) = self.nodes[node].live.get(&thread) else {
            return;
        };
        let mut now = Vec::new();
        // A subscriber in catch-up reads it later.
        let is_live = |(_, it): &(&usize, &SimSubscriber)| it.reader.is_none();
        for (client, subscriber) in live.subscribers.iter().filter(is_live) {
            now.push((*client, subscriber.link));
        }
        for (client, link) in now {
            self.send_in_pieces(thread, client, link, message.clone());
        }
    }

    /// Sends the notifications of one record, sometimes in two parts, between which a connection
    /// may break.
    pub(super) fn send_in_pieces(
        &mut self,
        thread: usize,
        client: usize,
        link: Link,
        message: ToClient,
    ) {
        if let ToClient::Notified(record, all) = &message
            && all.len() > 1
            && self.threads[thread].rng.percent(30)
        {
            let middle = self.threads[thread].rng.index(all.len() - 1) + 1;
            let (first, rest) = (0..middle, middle..all.end);
            let wait = self.threads[thread].rng.below(60);
            let record = record.clone();
            self.send_to_client(
                thread,
                client,
                link,
                ToClient::Notified(record.clone(), first),
            );
            self.threads[thread].clients[client].inbound_until += wait;
            return self.send_to_client(thread, client, link, ToClient::Notified(record, rest));
        }
        self.send_to_client(thread, client, link, message);
    }

    /// Sends a message to a client; on one connection messages stay in order.
    pub fn send_to_client(&mut self, thread: usize, client: usize, link: Link, message: ToClient) {
        let sim_thread = &mut self.threads[thread];
        let wait = sim_thread.rng.range(1, 12);
        let it = &mut sim_thread.clients[client];
        if it.link != link {
            return;
        }
        let at = it.inbound_until.max(self.now + wait);
        it.inbound_until = at;
        self.push_at(at, Next::ToClient(thread, client, link, message));
    }

    /// Handles a report of work, and returns whether there was capacity for it.
    pub fn report(
        &mut self,
        thread: usize,
        node: usize,
        command: Command,
    ) -> Result<bool, BrokenPromise> {
        let now = self.clock(node);
        let command = with_absolute_times(&command, now);
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return Ok(true);
        };
        if !live.busy
            && let Err(refusal) = live.owner.thread().decide(command.clone(), now)
        {
            self.coverage.hit(refusal_name(&refusal));
        }
        let is_accepted = live.owner.offer(Envelope::report(command)).is_ok();
        self.drive(thread, node)?;
        Ok(is_accepted)
    }
}

/// Returns an open request, as it is sent to a client.
pub(super) fn sent_request(
    thread: &Thread,
    request: RequestNumber,
) -> Result<Rc<SentRequest>, BrokenPromise> {
    let open = thread.requests().find(|(number, _)| *number == request);
    let wire_request = raddle_core::ask(thread, request);
    match (open, wire_request) {
        (Some((number, open)), Some((id, _, params))) => {
            let hunks = params["hunks"].as_array().into_iter().flatten();
            let hunks = hunks.filter_map(|it| it["id"].as_str().map(str::to_owned));
            Ok(Rc::new(SentRequest {
                number,
                id,
                item: open.item.clone(),
                ask: open.ask.clone(),
                hunks: hunks.collect(),
            }))
        }
        _ => Err(BrokenPromise {
            promise: "I4 requests",
            how: format!("request {request} has no form on the wire"),
        }),
    }
}
