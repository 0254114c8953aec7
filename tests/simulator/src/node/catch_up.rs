//! Listeners: where they stand when they come, and what they are sent of what they missed.

use std::rc::Rc;

use raddle_core::{CatchUpReader, CursorStatus, Event, Record, RecordBody, RequestNumber, Seq};

use super::tell::question;
use crate::check::{Check, broken, rejoin};
use crate::client::{Link, ToClient};
use crate::client_view::{ClientView, ToldRecord};
use crate::world::{
    AtNode, Caller, CallerRequest, OpenThread, SimSubscriber, SimWorld, StoreFault,
};

impl SimWorld {
    /// Someone listens now.
    pub(super) fn subscribed(
        &mut self,
        thread: usize,
        node: usize,
        settled: raddle_core::SubscriptionStart,
    ) -> Check {
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return Ok(());
        };
        let (opening, stored) = (live.opening, live.owner.stored());
        let Some(Caller {
            client,
            link,
            request: CallerRequest::Subscribe(seen),
        }) = live.tokens.remove(&settled.token)
        else {
            return broken(super::ONE_ANSWER, "a wish is taken for a listener");
        };
        // Two connections of one client are not in order with each other: the older one, when it comes
        // last, is over already, and must not take the place of the newer one.
        let newer = |it: &SimSubscriber| it.link.count > link.count;
        if live.subscribers.get(&client).is_some_and(newer) {
            return Ok(());
        }
        let whole = seen.is_none() || settled.cursor == CursorStatus::Expired;
        let log = self.store.log(thread);
        let now = live.owner.thread();
        let reader =
            (!whole).then(|| Box::new(CatchUpReader::returning(log.fold(settled.after), now)));
        live.subscribers
            .insert(client, SimSubscriber { link, reader });
        let lane = &self.lanes[thread];
        if let Some(seen) = seen {
            if !lane.gone {
                rejoin::i1_cursor(&lane.oracle, log, stored, seen, settled.cursor)?;
            }
            self.reach.hit(match settled.cursor {
                CursorStatus::Good => "cursor good",
                CursorStatus::Expired => "cursor expired",
            });
        }
        if !whole {
            self.tell_client(thread, client, link, ToClient::Joined);
            self.push_node(1, node, AtNode::CatchUp(thread, opening, client, link));
            return Ok(());
        }
        self.reach.hit("snapshot");
        let rows = log.rows.iter().filter(|row| row.record.seq <= stored);
        let picture = ClientView::snapshot(rows.map(|row| &**row), live.owner.thread());
        let snapshot = match picture {
            Ok(picture) => ToClient::Snapshot(stored, Box::new(picture)),
            // The records went while a former owner still believes in them.
            Err(_) if lane.gone => ToClient::Closed,
            Err(nonsense) => return rejoin::i1_makes_sense(Err(nonsense)),
        };
        let asks: Vec<RequestNumber> = numbers(live);
        self.tell_client(thread, client, link, snapshot);
        self.ask_one(thread, node, client, link, asks)
    }

    /// Some who hear live have no room for what comes next, and read on from the journal.
    pub(super) fn some_fall_behind(&mut self, thread: usize, node: usize) {
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return;
        };
        let (Some(settled), opening) = (live.owner.settled(), live.opening) else {
            return;
        };
        let mut fallen = Vec::new();
        for (client, listener) in &mut live.subscribers {
            if listener.reader.is_none() && self.lanes[thread].rng.percent(4) {
                listener.reader = Some(Box::new(CatchUpReader::at_head(settled)));
                fallen.push((*client, listener.link));
            }
        }
        for (client, link) in fallen {
            self.reach.hit("fell behind");
            self.read_later(thread, node, opening, client, link);
        }
    }

    /// A listener is told a page of what it missed, from the journal.
    pub(super) fn catch_up(
        &mut self,
        thread: usize,
        node: usize,
        opening: u64,
        client: usize,
        link: Link,
    ) -> Check {
        const PAGE: usize = 6;
        if self.trouble(thread) == Some(StoreFault::Unavailable) {
            self.push_node(50, node, AtNode::CatchUp(thread, opening, client, link));
            return Ok(());
        }
        let live = self.nodes[node].live.get_mut(&thread);
        let Some(live) = live.filter(|it| it.opening == opening) else {
            return Ok(());
        };
        let (stored, busy) = (live.owner.stored(), live.owner.settled().is_none());
        let listener = live
            .subscribers
            .get_mut(&client)
            .filter(|it| it.link == link);
        let Some(reader) = listener.and_then(|it| it.reader.as_mut()) else {
            return Ok(());
        };
        let after = reader.after();
        let missed = |seq: Seq| seq > after && seq <= stored;
        let log = self.store.log(thread);
        let rows = log.rows.iter().filter(|row| missed(row.record.seq));
        let mut messages = Vec::new();
        for row in rows.take(PAGE) {
            if is_saved(&row.record) {
                self.reach.hit("text saved while someone catches up");
            }
            let told = reader.read(row.record.clone());
            let words = ToldRecord {
                seq: told.record.seq,
                notifications: told.notifications,
            };
            let all = 0..words.notifications.len();
            messages.push(ToClient::Notified(Rc::new(words), all));
        }
        // While an append is under way its owner knows of more than is stored.
        let more = messages.len() == PAGE || busy;
        for message in messages {
            self.tell_in_pieces(thread, client, link, message);
        }
        if more {
            self.read_later(thread, node, opening, client, link);
            return Ok(());
        }
        self.is_live_again(thread, node, client, link)
    }

    /// It goes on reading when it has room; some read slowly.
    fn read_later(&mut self, thread: usize, node: usize, opening: u64, client: usize, link: Link) {
        let rng = &mut self.lanes[thread].rng;
        let wait = if rng.percent(20) {
            rng.range(50, 500)
        } else {
            rng.range(1, 10)
        };
        self.push_node(wait, node, AtNode::CatchUp(thread, opening, client, link));
    }

    fn is_live_again(&mut self, thread: usize, node: usize, client: usize, link: Link) -> Check {
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return Ok(());
        };
        let reader = live
            .subscribers
            .get_mut(&client)
            .and_then(|it| it.reader.take());
        let (Some(settled), Some(reader)) = (live.owner.settled(), reader) else {
            return broken(
                "I1 rejoin is exact",
                "a reader is live before its thread is stored",
            );
        };
        let (lane, log) = (&self.lanes[thread], self.store.log(thread));
        let is_current = live.owner.stored() == log.head && !lane.gone;
        if is_current && reader.after() != log.head {
            let after = reader.after();
            return broken(
                "I1 rejoin is exact",
                format!("a reader is live at {after} and the head is {}", log.head),
            );
        }
        let asks = reader.catch_up(settled);
        self.ask_one(thread, node, client, link, asks)
    }

    fn ask_one(
        &mut self,
        thread: usize,
        node: usize,
        client: usize,
        link: Link,
        asks: Vec<RequestNumber>,
    ) -> Check {
        for number in asks {
            let Some(live) = self.nodes[node].live.get(&thread) else {
                return Ok(());
            };
            let asked = ToClient::Ask(question(live.owner.thread(), number)?);
            self.tell_client(thread, client, link, asked);
        }
        Ok(())
    }
}

/// The requests that are open.
fn numbers(live: &OpenThread) -> Vec<RequestNumber> {
    let requests = live.owner.thread().requests();
    requests.map(|(number, _)| number).collect()
}

fn is_saved(record: &Record) -> bool {
    match &record.body {
        RecordBody::Event(event) => matches!(**event, Event::ItemSaved(_)),
        RecordBody::Delta(_) => false,
    }
}
