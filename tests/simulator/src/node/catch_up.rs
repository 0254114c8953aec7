//! Listeners: where they stand when they come, and what they are sent of what they missed.

use std::rc::Rc;

use raddle_core::{Cursor, Envelope, Seq, tell_again};

use super::tell::question;
use crate::check::{Broken, Check, broken, rejoin};
use crate::client::{Link, ToClient};
use crate::picture::{Picture, Words};
use crate::world::{Asked, AtNode, Caller, Listener, Live, Trouble, World};

impl World {
    /// Someone listens now.
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
            asked,
        }) = live.tokens.remove(&settled.token)
        else {
            return Ok(());
        };
        let (seen, comes) = match asked {
            Asked::Subscribe(seen) => (seen, true),
            Asked::GoOn(seen) => (Some(seen), false),
            Asked::Wish(..) => return broken(super::ONE_ANSWER, "a wish is taken for a listener"),
        };
        // Two connections of one client are not in order with each other: the older one, when it comes
        // last, is over already, and must not take the place of the newer one.
        let newer = |it: &Listener| it.link.count > link.count;
        if live.listeners.get(&client).is_some_and(newer) {
            return Ok(());
        }
        let asks = asks(live)?;
        let whole = seen.is_none() || settled.cursor == Cursor::Expired;
        let listener = Listener {
            link,
            after: settled.after,
            head: settled.head,
            replay: None,
            queue: (!whole).then(|| asks.clone()),
            saved: false,
        };
        live.listeners.insert(client, listener);
        let (lane, log) = (&self.lanes[thread], self.store.log(thread));
        if let Some(seen) = seen {
            if !lane.gone {
                rejoin::i1_cursor(&lane.oracle, log, stored, seen, settled.cursor)?;
            }
            self.reach.hit(match settled.cursor {
                Cursor::Good => "cursor good",
                Cursor::Expired => "cursor expired",
            });
        }
        if !whole {
            if comes {
                self.tell_client(thread, client, link, ToClient::Joined);
            }
            self.push_node(1, node, AtNode::CatchUp(thread, opening, client, link));
            return Ok(());
        }
        self.reach.hit("snapshot");
        let rows = log.rows.iter().filter(|row| row.record.seq <= stored);
        let picture = Picture::snapshot(rows.map(|row| &**row), live.owner.thread());
        let snapshot = match picture {
            Ok(picture) => ToClient::Snapshot(stored, Box::new(picture)),
            // The records went while a former owner still believes in them.
            Err(_) if lane.gone => ToClient::Closed,
            Err(nonsense) => return rejoin::i1_makes_sense(Err(nonsense)),
        };
        self.tell_client(thread, client, link, snapshot);
        for ask in asks {
            self.tell_client(thread, client, link, ask);
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
    ) -> Check {
        const PAGE: usize = 6;
        if self.trouble(thread) == Some(Trouble::Unavailable) {
            self.push_node(50, node, AtNode::CatchUp(thread, opening, client, link));
            return Ok(());
        }
        let live = self.nodes[node].live.get_mut(&thread);
        let Some(live) = live.filter(|it| it.opening == opening) else {
            return Ok(());
        };
        let busy = live.busy;
        let Some(listener) = live.listeners.get_mut(&client).filter(|it| it.link == link) else {
            return Ok(());
        };
        let log = self.store.log(thread);
        let after = listener.after;
        let replay = listener
            .replay
            .get_or_insert_with(|| Box::new(log.fold(after)));
        let missed = |seq: Seq| seq > after && seq <= listener.head;
        let rows = log.rows.iter().filter(|row| missed(row.record.seq));
        let mut messages = Vec::new();
        for row in rows.take(PAGE) {
            let words = Words {
                seq: row.record.seq,
                notifications: tell_again(replay, &row.record),
            };
            let all = 0..words.notifications.len();
            messages.push(ToClient::Told(Rc::new(words), all));
            listener.after = row.record.seq;
        }
        // What was read while an append is under way may lack what that append has settled: only when its
        // fate is known can it be seen whether this listener has everything.
        let more = messages.len() == PAGE || busy;
        let (after, again) = (listener.after, !more && listener.saved);
        if !more && !again {
            messages.extend(listener.queue.take().unwrap_or_default());
        }
        for message in messages {
            self.tell_in_pieces(thread, client, link, message);
        }
        if more {
            // Some read slowly.
            let rng = &mut self.lanes[thread].rng;
            let wait = if rng.percent(20) {
                rng.range(50, 500)
            } else {
                rng.range(1, 10)
            };
            self.push_node(wait, node, AtNode::CatchUp(thread, opening, client, link));
        }
        if again {
            return self.go_on(thread, node, client, link, after);
        }
        Ok(())
    }

    /// While it was catching up, a text was stored anew as a whole, and what led to it is gone from the
    /// journal: whether it can go on from where it is now, only the thread can say.
    fn go_on(&mut self, thread: usize, node: usize, client: usize, link: Link, seen: Seq) -> Check {
        self.reach.hit("text saved while someone catches up");
        let token = self.token(thread);
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return Ok(());
        };
        live.listeners.remove(&client);
        let subscribe = Envelope::Subscribe {
            token,
            seen: Some(seen),
        };
        if live.owner.offer(subscribe).is_err() {
            self.tell_client(thread, client, link, ToClient::Closed);
            return Ok(());
        }
        let caller = Caller {
            client,
            link,
            asked: Asked::GoOn(seen),
        };
        live.tokens.insert(token, caller);
        self.drive(thread, node)
    }
}

/// The requests that are open, each as it is put to a client.
fn asks(live: &Live) -> Result<Vec<ToClient>, Broken> {
    let thread = live.owner.thread();
    let asks = thread
        .requests()
        .map(|(number, _)| question(thread, number));
    asks.map(|asked| asked.map(ToClient::Ask)).collect()
}
