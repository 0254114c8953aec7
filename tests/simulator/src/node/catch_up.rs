//! Subscribers: the start of a subscription, and the catch-up on missed records.

use std::rc::Rc;

use raddle_core::{CatchUpReader, CursorStatus, Event, Record, RecordBody, RequestNumber, Seq};

use super::outgoing::sent_request;
use crate::check::{Check, broken, rejoin};
use crate::client::{Link, ToClient};
use crate::client_view::{AnnouncedRecord, ClientView};
use crate::world::{
    AtNode, Caller, CallerRequest, OpenThread, SimSubscriber, SimWorld, StoreFault,
};

impl SimWorld {
    /// Handles a new subscription.
    pub(super) fn subscribed(
        &mut self,
        thread: usize,
        node: usize,
        start: raddle_core::SubscriptionStart,
    ) -> Check {
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return Ok(());
        };
        let (opening, stored) = (live.opening, live.owner.stored());
        let Some(Caller {
            client,
            link,
            request: CallerRequest::Subscribe(cursor),
        }) = live.tokens.remove(&start.token)
        else {
            return broken(super::ONE_ANSWER, "a request is taken for a subscription");
        };
        // Two connections of one client are not ordered with each other. The older one, when it
        // comes last, is closed already, and must not replace the newer one.
        let newer = |it: &SimSubscriber| it.link.count > link.count;
        if live.subscribers.get(&client).is_some_and(newer) {
            return Ok(());
        }
        if !self.covers(thread, node, stored) {
            self.send_to_client(thread, client, link, ToClient::Closed);
            return Ok(());
        }
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return Ok(());
        };
        let whole = cursor.is_none() || start.cursor == CursorStatus::Expired;
        let log = self.store.log(thread);
        let now = live.owner.thread();
        let reader =
            (!whole).then(|| Box::new(CatchUpReader::returning(log.fold(start.after), now)));
        live.subscribers
            .insert(client, SimSubscriber { link, reader });
        let sim_thread = &self.threads[thread];
        if let Some(cursor) = cursor {
            // A former owner on a fleet does not know what was lost; the newest one does.
            let is_newest = sim_thread
                .oracle
                .writer
                .is_some_and(|(writer, _)| writer == (node, opening));
            if !sim_thread.removed && (is_newest || self.store.database.is_none()) {
                rejoin::i1_cursor(&sim_thread.oracle, log, stored, cursor, start.cursor)?;
            }
            self.coverage.hit(match start.cursor {
                CursorStatus::Good => "cursor good",
                CursorStatus::Expired => "cursor expired",
            });
        }
        if !whole {
            self.send_to_client(thread, client, link, ToClient::Joined);
            self.push_node(1, node, AtNode::CatchUp(thread, opening, client, link));
            return Ok(());
        }
        self.coverage.hit("snapshot");
        let rows = log.rows.iter().filter(|row| row.record.seq <= stored);
        let view = ClientView::snapshot(rows.map(|row| &**row), live.owner.thread());
        let snapshot = match view {
            Ok(view) => ToClient::Snapshot(stored, Box::new(view)),
            // The records are removed while a former owner still has the thread open.
            Err(_) if sim_thread.removed => ToClient::Closed,
            Err(error) => return rejoin::i1_makes_sense(Err(error)),
        };
        let asks: Vec<RequestNumber> = numbers(live);
        self.send_to_client(thread, client, link, snapshot);
        self.send_requests(thread, node, client, link, asks)
    }

    /// Moves some live subscribers without capacity to catch-up from the journal.
    pub(super) fn some_fall_behind(&mut self, thread: usize, node: usize) {
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return;
        };
        let (Some(stored_thread), opening) = (live.owner.stored_thread(), live.opening) else {
            return;
        };
        let mut slow = Vec::new();
        for (client, subscriber) in &mut live.subscribers {
            if subscriber.reader.is_none() && self.threads[thread].rng.percent(4) {
                subscriber.reader = Some(Box::new(CatchUpReader::at_head(stored_thread)));
                slow.push((*client, subscriber.link));
            }
        }
        for (client, link) in slow {
            self.coverage.hit("fell behind");
            self.read_later(thread, node, opening, client, link);
        }
    }

    /// Sends a subscriber a page of what it missed, from the journal.
    pub(super) fn catch_up(
        &mut self,
        thread: usize,
        node: usize,
        opening: u64,
        client: usize,
        link: Link,
    ) -> Check {
        const PAGE: usize = 6;
        if self.store_fault(thread) == Some(StoreFault::Unavailable) {
            self.push_node(50, node, AtNode::CatchUp(thread, opening, client, link));
            return Ok(());
        }
        let Some(stored) = self.live(thread, node, opening).map(|it| it.owner.stored()) else {
            return Ok(());
        };
        if !self.covers(thread, node, stored) {
            self.push_node(50, node, AtNode::CatchUp(thread, opening, client, link));
            return Ok(());
        }
        let live = self.nodes[node].live.get_mut(&thread);
        let Some(live) = live.filter(|it| it.opening == opening) else {
            return Ok(());
        };
        let (stored, busy) = (live.owner.stored(), live.owner.stored_thread().is_none());
        let subscriber = live
            .subscribers
            .get_mut(&client)
            .filter(|it| it.link == link);
        let Some(reader) = subscriber.and_then(|it| it.reader.as_mut()) else {
            return Ok(());
        };
        let after = reader.after();
        let missed = |seq: Seq| seq > after && seq <= stored;
        let log = self.store.log(thread);
        let rows = log.rows.iter().filter(|row| missed(row.record.seq));
        let mut messages = Vec::new();
        for row in rows.take(PAGE) {
            if is_saved(&row.record) {
                self.coverage.hit("text saved while someone catches up");
            }
            let announcement = reader.read(row.record.clone());
            let record = AnnouncedRecord {
                seq: announcement.record.seq,
                notifications: announcement.notifications,
            };
            let all = 0..record.notifications.len();
            messages.push(ToClient::Notified(Rc::new(record), all));
        }
        // While an append is under way its owner knows of more than is stored.
        let more = messages.len() == PAGE || busy;
        for message in messages {
            self.send_in_pieces(thread, client, link, message);
        }
        if more {
            self.read_later(thread, node, opening, client, link);
            return Ok(());
        }
        self.is_live_again(thread, node, client, link)
    }

    /// Schedules the next read of a subscriber; some read slowly.
    fn read_later(&mut self, thread: usize, node: usize, opening: u64, client: usize, link: Link) {
        let rng = &mut self.threads[thread].rng;
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
        let (Some(stored_thread), Some(reader)) = (live.owner.stored_thread(), reader) else {
            return broken(
                "I1 rejoin is exact",
                "a reader is live before its thread is stored",
            );
        };
        let (sim_thread, log) = (&self.threads[thread], self.store.log(thread));
        let is_current = live.owner.stored() == log.head && !sim_thread.removed;
        if is_current && reader.after() != log.head {
            let after = reader.after();
            return broken(
                "I1 rejoin is exact",
                format!("a reader is live at {after} and the head is {}", log.head),
            );
        }
        let asks = reader.catch_up(stored_thread);
        self.send_requests(thread, node, client, link, asks)
    }

    fn send_requests(
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
            let request = ToClient::Ask(sent_request(live.owner.thread(), number)?);
            self.send_to_client(thread, client, link, request);
        }
        Ok(())
    }
}

/// Returns the open requests.
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
