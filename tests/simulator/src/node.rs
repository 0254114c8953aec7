//! What a node does: it asks for threads, opens them, and carries out what the core's task says.

mod append;
mod catch_up;
mod open;
mod tell;

use raddle_core::{
    Command, CommandOutcome, Envelope, IdempotentRequest, Refusal, Step, Token, TurnId, WriterEnd,
};

use crate::check::{Check, broken};
use crate::client::{ClientRequest, Link, ToClient, ToNode};
use crate::coverage::ended_name;
use crate::store::Append;
use crate::world::{AtNode, Caller, CallerRequest, Next, OpenThread, OpenWaiter, SimWorld};

impl SimWorld {
    /// Something comes to a node that runs.
    pub fn at_node(&mut self, node: usize, it: AtNode) -> Check {
        match it {
            AtNode::Granted(thread, epoch) => self.granted(thread, node, epoch),
            AtNode::Read(thread, epoch) => self.open(thread, node, epoch),
            AtNode::Renew(thread, opening) => self.renew(thread, node, opening),
            AtNode::Drive(thread, opening) => {
                if let Some(live) = self.live(thread, node, opening) {
                    live.wake = None;
                }
                self.drive(thread, node)
            }
            AtNode::Answer(thread, opening, result) => self.answer(thread, node, opening, result),
            AtNode::Head(thread, opening, head) => self.head(thread, node, opening, head),
            AtNode::Model(thread, opening, call) => self.model_goes_on(thread, node, opening, call),
            AtNode::Tool(thread, opening, item, plan) => {
                self.tool_goes_on(thread, node, opening, &item, plan)
            }
            AtNode::Begin(thread, opening) => self.turn_begins(thread, node, opening),
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

    /// Something comes to a node that is gone.
    pub fn nobody_there(&mut self, it: AtNode) -> Check {
        if let AtNode::Message(thread, client, link, _) = it {
            self.tell_client(thread, client, link, ToClient::Closed);
        }
        Ok(())
    }

    /// A thread that is open here, if it is this opening.
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
                ToNode::Subscribe(seen) => {
                    self.want(thread, node, OpenWaiter { client, link, seen })
                }
                ToNode::Request { number, .. } => {
                    let refused = Err(Refusal::OwnedElsewhere);
                    self.tell_client(thread, client, link, ToClient::Reply(number, refused));
                }
            }
            return Ok(());
        }
        let token = self.token(thread);
        let (asked, envelope) = match message {
            ToNode::Subscribe(seen) => (
                CallerRequest::Subscribe(seen),
                Envelope::Subscribe { token, seen },
            ),
            ToNode::Request {
                wish: ClientRequest::Fork,
                number,
                ..
            } => {
                self.fork(thread, node);
                let done = Ok(CommandOutcome::Done {});
                self.tell_client(thread, client, link, ToClient::Reply(number, done));
                return Ok(());
            }
            ToNode::Request {
                number,
                mut wish,
                key,
            } => {
                let command = self.command_of(thread, &wish);
                if let (ClientRequest::Revert(at), Command::Revert(it)) = (&mut wish, &command) {
                    *at = Some(it.at);
                }
                self.count_interrupt(thread, node, &wish);
                let envelope = Envelope::Command {
                    command,
                    token: Some(token),
                    key: key.map(|(key, asked)| {
                        let shows = None;
                        Box::new(IdempotentRequest {
                            key,
                            asked,
                            render: shows,
                        })
                    }),
                };
                (CallerRequest::Request(number, wish), envelope)
            }
        };
        let caller = Caller {
            client,
            link,
            request: asked,
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

    /// Interrupts come at all times, and late ones are the dangerous ones.
    fn count_interrupt(&mut self, thread: usize, node: usize, wish: &ClientRequest) {
        let (ClientRequest::Interrupt(turn), Some(live)) =
            (wish, self.nodes[node].live.get(&thread))
        else {
            return;
        };
        let running = live.owner.thread().turn().map(|turn| &turn.id);
        if live.busy && running.is_some() {
            self.reach.hit("interrupt while an append is under way");
        }
        let turns = &self.lanes[thread].oracle.turns;
        let over = |turn: &TurnId| turns.iter().any(|(known, _)| known == turn);
        if running.is_some()
            && turn
                .as_ref()
                .is_some_and(|it| over(it) && running != Some(it))
        {
            self.reach.hit("interrupt of a turn that is over");
        }
    }

    fn token(&mut self, thread: usize) -> Token {
        self.lanes[thread].minted += 1;
        Token(self.lanes[thread].minted)
    }

    /// Does what the core's task says, until it waits.
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
                    let wait = self.lanes[thread].rng.range(1, 5);
                    self.push(wait, Next::AskHead(thread, node, opening));
                    return Ok(());
                }
                Step::Do(outs) => self.carry_out(thread, node, outs)?,
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
        self.say(|| format!("thread {thread}: node {node} has ended: {ended:?}"));
        self.reach.hit(ended_name(ended));
        let me = (node, self.nodes[node].life);
        let epoch = self.nodes[node].live.get(&thread).map(|live| live.epoch.0);
        let lane = &mut self.lanes[thread];
        if lane.lease.holder == Some(me) && Some(lane.lease.epoch) == epoch {
            lane.lease.until = self.now;
        }
        if *ended == WriterEnd::Deleted {
            self.push(5, Next::Remove(thread));
        }
        self.close(thread, node);
    }
}

const ONE_ANSWER: &str = "every request has exactly one answer";
