//! What was ruled, and who said yes to what: nothing runs that was not allowed, or that someone allowed otherwise.

use std::collections::{BTreeMap, BTreeSet};

use raddle_core::policy::{Ruling, Verdict};
use raddle_core::{
    Ask, Event, Grant, ItemId, Record, RecordBody, RequestAnswer, RequestNumber, RequestOpened,
    RequestResolved, Resolution,
};

use super::requests::is_yes;
use super::{Check, broken};

const I3: &str = "I3 no silent run";

/// What is known of rulings, of yeses, and of rights.
#[derive(Debug, Default)]
pub struct Rulings {
    items: BTreeMap<ItemId, RulingFacts>,
    asked: BTreeMap<RequestNumber, RequestOpened>,
    /// What has a yes until the session ends.
    session: BTreeSet<String>,
}

#[derive(Debug)]
struct RulingFacts {
    ruling: Option<Ruling>,
    is_users: bool,
    /// Whether someone said yes to exactly this.
    has_yes: bool,
}

impl Rulings {
    /// I3: no tool runs without a ruling that allows it or a yes that matches it, and nobody gives rights that
    /// were not asked for.
    pub fn check(&self, record: &Record) -> Check {
        let RecordBody::Event(event) = &record.body else {
            return Ok(());
        };
        match &**event {
            Event::ToolStarted(it) => self.may_run(&it.item),
            // To ask a client is to start its tool.
            Event::RequestOpened(it) if it.ask == (Ask::ClientTool {}) => self.may_run(&it.item),
            Event::RequestResolved(it) => self.may_give(it),
            _ => Ok(()),
        }
    }

    fn may_run(&self, item: &ItemId) -> Check {
        let ruled = self.items.get(item);
        if ruled.is_some_and(|it| it.is_users) {
            return Ok(());
        }
        let Some((ruled, ruling)) = ruled.and_then(|it| Some((it, it.ruling.as_ref()?))) else {
            return broken(I3, format!("{item} runs without a ruling"));
        };
        let digest = &ruling.digest;
        match ruling.verdict {
            Verdict::Allow if ruling.rule == "session" && !self.session.contains(digest) => {
                broken(I3, format!("{item} runs by a yes that nobody gave"))
            }
            Verdict::Ask if !ruled.has_yes => {
                broken(I3, format!("{item} runs without a yes to {digest}"))
            }
            Verdict::Deny => broken(I3, format!("{item} runs and was denied")),
            Verdict::Allow | Verdict::Ask => Ok(()),
        }
    }

    fn may_give(&self, it: &RequestResolved) -> Check {
        let Some(grant) = &it.grant else {
            return Ok(());
        };
        let asked = match self.asked.get(&it.request).map(|it| &it.ask) {
            Some(Ask::Permissions(it)) => Grant::of_wire(&it.permissions),
            _ => Grant::default(),
        };
        let is_answered = matches!(it.resolution, Resolution::Answered { .. });
        let is_asked = grant.write.iter().all(|path| asked.write.contains(path));
        match is_answered && is_asked && (asked.network || !grant.network) {
            true => Ok(()),
            false => broken(I3, format!("request {} gave {grant:?}", it.request)),
        }
    }

    /// A record is stored.
    pub fn note(&mut self, record: &Record) {
        let RecordBody::Event(event) = &record.body else {
            return;
        };
        match &**event {
            Event::ItemStarted(it) => {
                let ruled = RulingFacts {
                    ruling: it.ruling.clone(),
                    is_users: it.item.is_users_command(),
                    has_yes: false,
                };
                self.items.insert(it.item.id.clone(), ruled);
            }
            Event::RequestOpened(it) => drop(self.asked.insert(it.request, it.clone())),
            Event::RequestResolved(it) => {
                let Some(opened) = self.asked.remove(&it.request) else {
                    return;
                };
                let digest = opened.digest.filter(|_| is_yes(&it.resolution));
                let ruled = self.items.get_mut(&opened.item);
                let (Some(digest), Some(ruled)) = (digest, ruled) else {
                    return;
                };
                let ruling = ruled.ruling.as_ref();
                ruled.has_yes |= ruling.is_some_and(|it| it.digest == digest);
                if let Resolution::Answered { answer, .. } = &it.resolution
                    && matches!(**answer, RequestAnswer::AcceptForSession {})
                {
                    self.session.insert(digest);
                }
            }
            Event::Forked(_) => self.session.clear(),
            _ => {}
        }
    }
}
