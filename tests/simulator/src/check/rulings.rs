//! Rulings and approvals: nothing runs that was not allowed, or that differs from what was
//! approved.

use std::collections::{BTreeMap, BTreeSet};

use raddle_core::policy::{Ruling, Verdict};
use raddle_core::{
    Ask, Event, Grant, ItemId, Record, RecordBody, RequestAnswer, RequestNumber, RequestOpened,
    RequestResolved, Resolution,
};

use super::requests::is_approval;
use super::{Check, broken};

const I3: &str = "I3 no silent run";

/// Rulings, approvals and rights so far.
#[derive(Debug, Default)]
pub struct Rulings {
    items: BTreeMap<ItemId, RulingFacts>,
    open_requests: BTreeMap<RequestNumber, RequestOpened>,
    /// Digests that are approved until the session ends.
    session: BTreeSet<String>,
}

#[derive(Debug)]
struct RulingFacts {
    ruling: Option<Ruling>,
    is_users: bool,
    /// Whether exactly this act was approved.
    is_approved: bool,
}

impl Rulings {
    /// I3: no tool runs without a ruling that allows it or an approval that matches it, and no
    /// rights are granted that were not requested.
    pub fn check(&self, record: &Record) -> Check {
        let RecordBody::Event(event) = &record.body else {
            return Ok(());
        };
        match &**event {
            Event::ToolStarted(it) => self.may_run(&it.item),
            // Sending the request starts the client's tool.
            Event::RequestOpened(it) if it.ask == (Ask::ClientTool {}) => self.may_run(&it.item),
            Event::RequestResolved(it) => self.may_grant(it),
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
            Verdict::Allow if ruling.rule == "session" && !self.session.contains(digest) => broken(
                I3,
                format!("{item} runs by an approval that was never given"),
            ),
            Verdict::Ask if !ruled.is_approved => {
                broken(I3, format!("{item} runs without an approval of {digest}"))
            }
            Verdict::Deny => broken(I3, format!("{item} runs and was denied")),
            Verdict::Allow | Verdict::Ask => Ok(()),
        }
    }

    fn may_grant(&self, it: &RequestResolved) -> Check {
        let Some(grant) = &it.grant else {
            return Ok(());
        };
        let requested = match self.open_requests.get(&it.request).map(|it| &it.ask) {
            Some(Ask::Permissions(it)) => Grant::of_wire(&it.permissions),
            _ => Grant::default(),
        };
        let is_answered = matches!(it.resolution, Resolution::Answered { .. });
        let is_requested = grant
            .write
            .iter()
            .all(|path| requested.write.contains(path));
        match is_answered && is_requested && (requested.network || !grant.network) {
            true => Ok(()),
            false => broken(I3, format!("request {} gave {grant:?}", it.request)),
        }
    }

    /// Adds a stored record.
    pub fn note(&mut self, record: &Record) {
        let RecordBody::Event(event) = &record.body else {
            return;
        };
        match &**event {
            Event::ItemStarted(it) => {
                let ruled = RulingFacts {
                    ruling: it.ruling.clone(),
                    is_users: it.item.is_users_command(),
                    is_approved: false,
                };
                self.items.insert(it.item.id.clone(), ruled);
            }
            Event::RequestOpened(it) => drop(self.open_requests.insert(it.request, it.clone())),
            Event::RequestResolved(it) => {
                let Some(opened) = self.open_requests.remove(&it.request) else {
                    return;
                };
                let digest = opened.digest.filter(|_| is_approval(&it.resolution));
                let ruled = self.items.get_mut(&opened.item);
                let (Some(digest), Some(ruled)) = (digest, ruled) else {
                    return;
                };
                let ruling = ruled.ruling.as_ref();
                ruled.is_approved |= ruling.is_some_and(|it| it.digest == digest);
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
