//! Lists: the filters of a query, the content of a summary, and the order.

use raddle_core::ports::{
    Activity, ListOrder, ListQuery, ListScope, PageCursor, ReadError, Summary, ThreadOwner,
};
use raddle_core::*;

use crate::fixtures;
use crate::simulated::SimulatedThread;

/// Whether a record that led from one summary to the other may do so: one that is not listed
/// changes only the head.
pub fn may_change(before: &Option<Summary>, record: &Record, after: &Option<Summary>) -> bool {
    let is_listed = match &record.body {
        RecordBody::Event(event) => event.is_listed(),
        RecordBody::Delta(_) => false,
    };
    let with_head = |it: &Option<Summary>| {
        it.clone().map(|it| Summary {
            head: record.seq,
            ..it
        })
    };
    is_listed || with_head(before) == with_head(after)
}

fn summary() -> Summary {
    let sim = SimulatedThread::new();
    let mut summary = Summary::of(sim.owner.thread()).expect("a thread that was started");
    summary.name = Some("Loom".to_owned());
    summary.preview = "wind the Warp, Ärger \u{212a}".to_owned();
    summary.provider = Some("p".to_owned());
    summary.tenant = Some("mill".to_owned());
    summary.principal = Some("ada".to_owned());
    summary.origin.originator = Some("ide".to_owned());
    summary
}

/// Tests each filter alone, on a thread that passes all the others.
#[test]
fn a_list_contains_threads_that_pass_every_filter() {
    let scope = |tenant: Option<&str>, principal: Option<&str>| ListQuery {
        scope: ListScope {
            tenant: tenant.map(str::to_owned),
            principal: principal.map(str::to_owned),
        },
        ..ListQuery::default()
    };
    let all = || scope(Some("mill"), None);
    let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let title = |text: &str| ListQuery {
        title: Some(text.to_owned()),
        ..all()
    };
    let sources = |sources: &[ThreadSource]| ListQuery {
        sources: Some(sources.to_vec()),
        ..all()
    };
    let cwds = |cwds: &[&str]| ListQuery {
        cwds: words(cwds),
        ..all()
    };
    let providers = |providers: &[&str]| ListQuery {
        providers: words(providers),
        ..all()
    };
    let originators = |originators: &[&str]| ListQuery {
        originators: words(originators),
        ..all()
    };
    let except = |except: ThreadId| ListQuery {
        except: vec![except],
        ..all()
    };
    let archived = ListQuery {
        archived: true,
        ..all()
    };
    for (query, expected) in [
        (all(), true),
        (scope(Some("mill"), Some("ada")), true),
        (scope(Some("mill"), Some("bob")), false),
        (scope(Some("yard"), None), false),
        (scope(None, Some("ada")), false),
        (archived, false),
        (cwds(&["/v", "/w"]), true),
        (cwds(&["/v"]), false),
        (providers(&["o", "p"]), true),
        (providers(&["o"]), false),
        (originators(&["tui", "ide"]), true),
        (originators(&["tui"]), false),
        (sources(&[ThreadSource::Cli, ThreadSource::Editor]), true),
        (sources(&[ThreadSource::Cli]), false),
        (sources(&[]), false),
        (except(ThreadId::mint()), true),
        (except(fixtures::thread_id()), false),
        (title("loom"), true),
        (title("WARP"), true),
        (title("weft"), false),
        (title("ärger"), true),
        // ASCII text is compared as ASCII: the kelvin sign is no k.
        (title("k"), false),
    ] {
        assert_eq!(query.matches(&summary()), expected, "{query:?}");
    }
    let unknown = Summary {
        provider: None,
        ..summary()
    };
    assert!(all().matches(&unknown));
    assert!(!providers(&["p"]).matches(&unknown));
}

#[test]
fn a_list_is_sorted_by_the_requested_time() {
    let thread_summary = Summary {
        created_at: Timestamp(1),
        recency_at: Timestamp(2),
        updated_at: Timestamp(3),
        ..summary()
    };
    for (order, time) in [
        (ListOrder::Created, 1),
        (ListOrder::Recency, 2),
        (ListOrder::Updated, 3),
    ] {
        assert_eq!(thread_summary.time(order), Timestamp(time), "{order:?}");
    }
}

#[test]
fn a_page_cursor_survives_formatting_and_parsing() {
    for (text, seq, included) in [("7", 7, false), ("=7", 7, true)] {
        let cursor = PageCursor {
            seq: Seq(seq),
            included,
        };
        assert_eq!(cursor.to_string(), text);
        assert_eq!(text.parse(), Ok(cursor));
    }
    for text in ["", "=", "==7", "-7", "seven"] {
        assert_eq!(
            text.parse::<PageCursor>(),
            Err(ReadError::BadCursor),
            "{text:?}"
        );
    }
}

/// A list changes when the user acts or a turn ends, and not with every delta of the model.
#[test]
fn updated_at_follows_user_actions_and_turn_ends() {
    let mut sim = SimulatedThread::new();
    let updated_at = |sim: &SimulatedThread| {
        let thread_summary = Summary::of(sim.owner.thread());
        thread_summary
            .expect("a thread that was started")
            .updated_at
    };
    for (line, changes) in [
        ("start t1 \"hi\"", true),
        ("message i1", false),
        ("text i1 \"hel\"", false),
        ("said i1 \"hello\"", false),
        ("call i2 shell \"ls\" ask", false),
        ("steer t1 \"more\"", true),
        ("goal to \"g\"", false),
        ("queue q1 \"later\"", false),
        ("interrupt t1", true),
        ("inject user \"u\"", false),
        ("rename \"n\"", true),
        ("set model \"m\"", true),
        ("note sha \"s\"", true),
        ("archive", true),
        ("unarchive", true),
    ] {
        let before = updated_at(&sim);
        sim.now = sim.now.plus_ms(1000);
        sim.run_line(line);
        let after = if changes { sim.now } else { before };
        assert_eq!(updated_at(&sim), after, "{line}");
    }
}

/// A list shows which node has a thread, whether a turn runs, and how many requests are open.
#[test]
fn a_list_shows_the_owner_and_the_work_of_a_thread() {
    let mut sim = SimulatedThread::new();
    let activity = |sim: &SimulatedThread| {
        let summary = Summary::of(sim.owner.thread());
        summary.expect("a thread that was started").activity
    };
    let epoch = sim.owner.thread().epoch();
    let node = sim.owner.thread().node().unwrap_or_default().to_owned();
    let owner = Some(ThreadOwner { node, epoch });
    for (line, owner, running, open_requests) in [
        ("start t1 \"hi\"", &owner, true, 0),
        ("call i1 shell \"ls\" ask", &owner, true, 1),
        ("call i2 shell \"ls\" ask", &owner, true, 2),
        ("answer 0 ann accept", &owner, true, 1),
        ("interrupt t1", &owner, false, 0),
        ("start t2 \"hi\"", &owner, true, 0),
        ("release", &None, true, 0),
    ] {
        sim.run_line(line);
        let expected = Activity {
            owner: owner.clone(),
            running,
            open_requests,
        };
        assert_eq!(activity(&sim), expected, "{line}");
    }
}

/// The preview comes from the first message with text, truncated for lists.
#[test]
fn a_list_shows_the_beginning_of_the_first_message() {
    let mut sim = SimulatedThread::new();
    let long = "ä".repeat(401);
    for (turn, text, preview) in [
        ("t1", "", ""),
        ("t2", long.as_str(), &long[..800]),
        ("t3", "bye", &long[..800]),
    ] {
        sim.send_command(fixtures::start_turn(turn, TurnKind::Work, Some(text)));
        sim.settle();
        let actual = Summary::of(sim.owner.thread()).map(|it| it.preview);
        assert_eq!(actual.as_deref(), Some(preview), "{turn}");
        sim.run_line("done");
    }
}

#[test]
fn a_thread_has_its_name_and_archived_flag() {
    let mut sim = SimulatedThread::new();
    for (line, name, archived) in [
        ("rename \"n\"", Some("n"), false),
        ("archive", Some("n"), true),
        ("rename", None, true),
        ("unarchive", None, false),
    ] {
        sim.run_line(line);
        let thread = sim.owner.thread();
        assert_eq!(thread.name(), name, "{line}");
        assert_eq!(thread.is_archived(), archived, "{line}");
    }
}
