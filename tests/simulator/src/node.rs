//! Nodes: they lease threads, open them, and perform the actions of the core's writer.

mod append;
mod catch_up;
mod fleet;
mod open;
mod outgoing;

pub(crate) use append::short;

use raddle_core::{
    Command, CommandOutcome, Envelope, IdempotentRequest, Refusal, Step, Token, TurnId, WriterEnd,
};

use crate::check::{Check, broken};
use crate::client::{ClientRequest, Link, ToClient, ToNode};
use crate::coverage::ended_name;
use crate::store::Append;
use crate::world::{AtNode, Caller, CallerRequest, Next, OpenThread, OpenWaiter, SimWorld};

impl SimWorld {
    /// Handles an event at a running node.
    pub fn at_node(&mut self, node: usize, it: AtNode) -> Check {
        match it {
            AtNode::Granted(thread, epoch) => self.granted(thread, node, epoch),
            AtNode::Read(thread, epoch) => self.open(thread, node, epoch, None),
            AtNode::Taken(thread, epoch, folded, result) => {
                self.taken(thread, node, epoch, folded, result)
            }
            AtNode::Answered(id, answer) => self.answered(node, id, answer),
            AtNode::Renew(thread, opening) => self.renew(thread, node, opening),
            AtNode::Drive(thread, opening) => {
                if let Some(live) = self.live(thread, node, opening) {
                    live.wake = None;
                }
                self.drive(thread, node)
            }
            AtNode::Answer(thread, opening, result) => self.answer(thread, node, opening, result),
            AtNode::Head(thread, opening, head) => self.head(thread, node, opening, head),
            AtNode::Model(thread, opening, call) => self.model_step(thread, node, opening, call),
            AtNode::Tool(thread, opening, item, plan) => {
                self.tool_step(thread, node, opening, &item, plan)
            }
            AtNode::Begin(thread, opening) => self.begin_turn(thread, node, opening),
            AtNode::Late(thread, opening, command) => {
                if self.live(thread, node, opening).is_some() {
                    self.report(thread, node, command)?;
                }
                Ok(())
            }
            AtNode::CatchUp(thread, opening, client, link) => {
                self.catch_up(thread, node, opening, client, link)
            }
            AtNode::Message(thread, client, link, message) => {
                self.message(thread, node, client, link, message)
            }
        }
    }

    /// Handles an event at a dead node.
    pub fn at_dead_node(&mut self, it: AtNode) -> Check {
        if let AtNode::Message(thread, client, link, _) = it {
            self.send_to_client(thread, client, link, ToClient::Closed);
        }
        Ok(())
    }

    /// Returns a thread that is open here, if it is this opening.
    pub fn live(&mut self, thread: usize, node: usize, opening: u64) -> Option<&mut OpenThread> {
        let live = self.nodes[node].live.get_mut(&thread)?;
        (live.opening == opening).then_some(live)
    }

    fn message(
        &mut self,
        thread: usize,
        node: usize,
        client: usize,
        link: Link,
        message: ToNode,
    ) -> Check {
        if !self.nodes[node].live.contains_key(&thread) {
            match message {
                ToNode::Subscribe(cursor) => self.request_open(
                    thread,
                    node,
                    OpenWaiter {
                        client,
                        link,
                        cursor,
                    },
                ),
                ToNode::Request { number, .. } => {
                    let refusal = Err(Refusal::OwnedElsewhere);
                    self.send_to_client(thread, client, link, ToClient::Reply(number, refusal));
                }
            }
            return Ok(());
        }
        let token = self.token(thread);
        let (request, envelope) = match message {
            ToNode::Subscribe(cursor) => (
                CallerRequest::Subscribe(cursor),
                Envelope::Subscribe { token, cursor },
            ),
            ToNode::Request {
                request: ClientRequest::Fork,
                number,
                ..
            } => {
                self.fork(thread, node);
                let done = Ok(CommandOutcome::Done {});
                self.send_to_client(thread, client, link, ToClient::Reply(number, done));
                return Ok(());
            }
            ToNode::Request {
                number,
                mut request,
                key,
            } => {
                let command = self.command_of(thread, &request);
                if let (ClientRequest::Revert(at), Command::Revert(it)) = (&mut request, &command) {
                    *at = Some(it.at);
                }
                self.count_interrupt(thread, node, &request);
                let envelope = Envelope::Command {
                    command,
                    token: Some(token),
                    key: key.map(|(key, request_hash)| {
                        let render = None;
                        Box::new(IdempotentRequest {
                            key,
                            request_hash,
                            render,
                        })
                    }),
                };
                (CallerRequest::Request(number, request), envelope)
            }
        };
        let caller = Caller {
            client,
            link,
            request,
        };
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return Ok(());
        };
        match live.owner.offer(envelope) {
            Ok(()) => {
                live.tokens.insert(token, caller);
                self.drive(thread, node)
            }
            Err(_) => self.reply(thread, caller, Err(Refusal::Busy)),
        }
    }

    /// Counts interrupts at risky moments: during an append, and late ones.
    fn count_interrupt(&mut self, thread: usize, node: usize, request: &ClientRequest) {
        let (ClientRequest::Interrupt(turn), Some(live)) =
            (request, self.nodes[node].live.get(&thread))
        else {
            return;
        };
        let running = live.owner.thread().turn().map(|turn| &turn.id);
        if live.busy && running.is_some() {
            self.coverage.hit("interrupt while an append is under way");
        }
        let turns = &self.threads[thread].oracle.turns;
        let over = |turn: &TurnId| turns.iter().any(|(known, _)| known == turn);
        if running.is_some()
            && turn
                .as_ref()
                .is_some_and(|it| over(it) && running != Some(it))
        {
            self.coverage.hit("interrupt of a turn that is over");
        }
    }

    fn token(&mut self, thread: usize) -> Token {
        self.threads[thread].minted += 1;
        Token(self.threads[thread].minted)
    }

    /// Performs the steps of the core's writer, until it waits.
    pub fn drive(&mut self, thread: usize, node: usize) -> Check {
        let now = self.clock(node);
        for _ in 0..200 {
            let Some(live) = self.nodes[node]
                .live
                .get_mut(&thread)
                .filter(|live| !live.busy)
            else {
                return Ok(());
            };
            let (opening, copy) = (live.opening, live.copy.clone());
            match live.owner.step(now) {
                Step::Append {
                    after,
                    records,
                    class,
                } => {
                    live.busy = true;
                    let append = Append {
                        thread,
                        copy,
                        after,
                        records,
                        class,
                    };
                    self.send(node, opening, append);
                    return Ok(());
                }
                Step::ReadHead => {
                    live.busy = true;
                    let wait = self.threads[thread].rng.range(1, 5);
                    self.push(wait, Next::AskHead(thread, node, opening));
                    return Ok(());
                }
                Step::Do(actions) => self.perform(thread, node, actions)?,
                Step::Wait(None) => return self.all_are_answered(thread, node),
                Step::Wait(Some(at)) if at <= now => {
                    return broken("I5 ending", "a task waits for a time that has passed");
                }
                Step::Wait(Some(at)) => {
                    let wait = u64::try_from(at.since(now)).unwrap_or(1);
                    let wake = self.now + wait;
                    if live.wake != Some(wake) {
                        live.wake = Some(wake);
                        self.push_node(wait, node, AtNode::Drive(thread, opening));
                    }
                    return self.all_are_answered(thread, node);
                }
                Step::Ended(WriterEnd::NotStored(_)) if self.fail_turn(thread, node) => {}
                Step::Ended(ended) => {
                    self.ended(thread, node, &ended);
                    return Ok(());
                }
            }
        }
        broken("I5 ending", "a task never comes to rest")
    }

    fn ended(&mut self, thread: usize, node: usize, ended: &WriterEnd) {
        self.trace_line(|| format!("thread {thread}: node {node} has ended: {ended:?}"));
        self.coverage.hit(ended_name(ended));
        let me = (node, self.nodes[node].incarnation);
        let epoch = self.nodes[node].live.get(&thread).map(|live| live.epoch.0);
        let sim_thread = &mut self.threads[thread];
        if sim_thread.lease.holder == Some(me) && Some(sim_thread.lease.epoch) == epoch {
            sim_thread.lease.until = self.now;
        }
        if *ended == WriterEnd::Deleted {
            self.push(5, Next::Remove(thread));
        }
        self.close(thread, node);
    }
}

const ONE_ANSWER: &str = "every request has exactly one answer";
