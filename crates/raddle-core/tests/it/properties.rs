//! Laws of the fold, on random histories.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use raddle_core::ports::Summary;
use raddle_core::*;

use crate::context::assert_well_formed;
use crate::lists::may_change;
use crate::simulated::{SimulatedThread, fold};

proptest! {
    // A history that breaks a law is shrunk, but only for a short time.
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        max_shrink_time: 5_000,
        ..ProptestConfig::default()
    })]

    /// The same choices produce the same records, and folding them again produces the live thread.
    #[test]
    fn replay_equals_live(choices in vec(any::<u16>(), 0..120)) {
        let mut sim = SimulatedThread::of(&choices);
        sim.settle();
        let again = { let mut again = SimulatedThread::of(&choices); again.settle(); again };
        prop_assert_eq!(&sim.journal, &again.journal);
        prop_assert_eq!(&fold(&sim.journal), sim.owner.thread());
        prop_assert_eq!(sim.owner.stored(), sim.owner.thread().head());
    }

    /// Every record survives serialization.
    #[test]
    fn records_survive_json(choices in vec(any::<u16>(), 0..120)) {
        for record in &SimulatedThread::of(&choices).journal {
            let text = serde_json::to_string(record).expect("a record as JSON");
            let read: Record = serde_json::from_str(&text).expect("the record again");
            prop_assert_eq!(record, &read);
        }
    }

    /// A snapshot at any point and the records after it produce the same thread as all records.
    #[test]
    fn base_and_tail_equal_the_whole(choices in vec(any::<u16>(), 0..80), cut in any::<prop::sample::Index>()) {
        let sim = SimulatedThread::of(&choices);
        let cut = cut.index(sim.journal.len());
        let text = serde_json::to_string(&Base::of(&fold(&sim.journal[..cut]))).expect("a base as JSON");
        let mut thread = serde_json::from_str::<Base>(&text).expect("the base again").thread;
        for record in &sim.journal[cut..] {
            thread.apply(record);
        }
        prop_assert_eq!(thread, fold(&sim.journal));
    }

    /// Deltas are not needed once their item is settled.
    #[test]
    fn settled_deltas_are_not_missed(choices in vec(any::<u16>(), 0..120)) {
        let sim = SimulatedThread::of(&choices);
        let mut needed: Vec<&Record> = Vec::new();
        for record in &sim.journal {
            if let RecordBody::Event(event) = &record.body && let Some(item) = event.settles() {
                needed.retain(|record| !matches!(&record.body, RecordBody::Delta(delta) if delta.item == *item));
            }
            needed.push(record);
        }
        let thread = fold(needed.iter().copied());
        prop_assert_eq!(&thread, &fold(&sim.journal));
        for record in needed {
            if let RecordBody::Delta(delta) = &record.body {
                let mut open = thread.turn().into_iter().flat_map(|turn| &turn.items);
                prop_assert!(open.any(|it| it.item.id == delta.item), "a delta was kept for nothing");
            }
        }
    }

    /// Summaries can be kept without keeping threads, and without the events that are not listed.
    #[test]
    fn the_list_follows_the_records(choices in vec(any::<u16>(), 0..120)) {
        let sim = SimulatedThread::of(&choices);
        let mut thread = Thread::new();
        let mut summary = None;
        for record in &sim.journal {
            let before = summary.clone();
            thread.apply(record);
            Summary::fold(&mut summary, record);
            prop_assert_eq!(&summary, &Summary::of(&thread));
            prop_assert!(may_change(&before, record, &summary), "{record:?}");
        }
    }

    /// The model's context always contains the newest notes on the environment, whatever was
    /// summarised.
    #[test]
    fn the_context_keeps_the_newest_notes(choices in vec(any::<u16>(), 0..120)) {
        let sim = SimulatedThread::of(&choices);
        let mut thread = Thread::new();
        let mut last = std::collections::BTreeMap::new();
        for (at, record) in sim.journal.iter().enumerate() {
            thread.apply(record);
            let RecordBody::Event(event) = &record.body else { continue };
            match &**event {
                Event::Briefed(it) => { last.insert(it.topic, it.text.clone()); }
                Event::ModelCalled(_) => {
                    let counts = |record: &&Record| thread.lineage().iter().any(|span| span.holds(record.seq));
                    let entries = Context::of(sim.journal[..=at].iter().filter(counts)).entries();
                    for text in last.values() {
                        let note = SharedEntry::from(ContextEntry::Note(text.clone()));
                        prop_assert_eq!(entries.iter().rfind(|it| **it == note), Some(&note));
                    }
                }
                _ => {}
            }
        }
    }

    /// Turns end once, after their items and requests; numbers rise; the model's context is
    /// well-formed.
    #[test]
    fn every_prefix_is_well_formed(choices in vec(any::<u16>(), 0..120)) {
        let sim = SimulatedThread::of(&choices);
        let mut thread = Thread::new();
        let mut ended = BTreeSet::new();
        let mut last = Seq::ZERO;
        let mut context = Context::new();
        for record in &sim.journal {
            prop_assert!(record.seq > last, "numbers rise");
            last = record.seq;
            let running = thread.turn().map(|turn| turn.id.clone());
            let open_items = thread.turn().map_or(0, |turn| turn.items.len());
            let open_requests = thread.requests().count();
            if let RecordBody::Event(event) = &record.body && let Event::TurnEnded(it) = &**event {
                prop_assert_eq!(Some(&it.turn), running.as_ref());
                prop_assert_eq!(open_items, 0, "items end before their turn");
                prop_assert_eq!(open_requests, 0, "requests end before their turn");
                prop_assert!(ended.insert(it.turn.clone()), "a turn ends once");
            }
            if let RecordBody::Delta(delta) = &record.body {
                let open = thread.turn().into_iter().flat_map(|turn| &turn.items);
                prop_assert!(open.into_iter().any(|it| it.item.id == delta.item), "text belongs to an open item");
            }
            thread.apply(record);
            prop_assert!(thread.head() <= thread.reserved().max(Seq(1)), "numbers stay in the reserve");
            context.apply(record);
            assert_well_formed(&context.entries());
        }
    }

    /// No tool starts that was not stored, and none starts twice.
    #[test]
    fn tools_start_once(choices in vec(any::<u16>(), 0..160)) {
        let mut sim = SimulatedThread::of(&choices);
        sim.settle();
        let mut started = BTreeSet::new();
        for effect in sim.starts.iter().filter(|it| matches!(it, Effect::RunTool { .. })) {
            prop_assert!(started.insert(effect.clone()), "{effect:?} started twice");
        }
        let stored = sim.journal.iter().filter(|record| {
            matches!(&record.body, RecordBody::Event(event) if matches!(**event, Event::ToolStarted(_)))
        });
        prop_assert!(started.len() <= stored.count(), "what starts was stored");
    }

    /// Every caller is answered once, except those that wait for a turn to end.
    #[test]
    fn callers_are_answered_once(choices in vec(any::<u16>(), 0..120)) {
        let mut sim = SimulatedThread::of(&choices);
        sim.settle();
        let mut answered = BTreeSet::new();
        for (token, _) in &sim.replies {
            prop_assert!(answered.insert(*token), "{token:?} answered twice");
        }
    }

    /// Announcements contain every record, in the order of the journal.
    #[test]
    fn announcements_equal_the_journal(choices in vec(any::<u16>(), 0..120)) {
        let mut sim = SimulatedThread::of(&choices);
        sim.settle();
        let announced: Vec<&Record> = sim.announcements.iter().map(|it| &it.record).collect();
        prop_assert_eq!(announced, sim.journal.iter().collect::<Vec<_>>());
    }
}
