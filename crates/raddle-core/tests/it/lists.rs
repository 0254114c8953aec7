//! Lists: which threads a query takes, what is shown of them, and by what they are ordered.

use raddle_core::ports::{ListOrder, ListQuery, PageCursor, ReadError, Summary};
use raddle_core::*;

use crate::fixtures;
use crate::simulated::SimulatedThread;

fn shown() -> Summary {
    let life = SimulatedThread::new();
    let mut shown = Summary::of(life.owner.thread()).expect("a thread that was started");
    shown.name = Some("Loom".to_owned());
    shown.preview = "wind the Warp, Ärger \u{212a}".to_owned();
    shown.provider = Some("p".to_owned());
    shown.origin.originator = Some("ide".to_owned());
    shown
}

/// Each filter alone, on a thread that passes all the others.
#[test]
fn a_list_takes_what_passes_every_filter() {
    let all = ListQuery::default;
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
    for (query, takes) in [
        (all(), true),
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
        // What is ASCII is compared as ASCII: the sign for kelvin is no k.
        (title("k"), false),
    ] {
        assert_eq!(query.matches(&shown()), takes, "{query:?}");
    }
    let unknown = Summary {
        provider: None,
        ..shown()
    };
    assert!(all().matches(&unknown));
    assert!(!providers(&["p"]).matches(&unknown));
}

#[test]
fn a_list_is_ordered_by_the_time_that_was_asked_for() {
    let shown = Summary {
        created_at: Timestamp(1),
        recency_at: Timestamp(2),
        updated_at: Timestamp(3),
        ..shown()
    };
    for (order, time) in [
        (ListOrder::Created, 1),
        (ListOrder::Recency, 2),
        (ListOrder::Updated, 3),
    ] {
        assert_eq!(shown.time(order), Timestamp(time), "{order:?}");
    }
}

#[test]
fn a_mark_is_read_as_it_was_written() {
    for (text, seq, included) in [("7", 7, false), ("=7", 7, true)] {
        let mark = PageCursor {
            seq: Seq(seq),
            included,
        };
        assert_eq!(mark.to_string(), text);
        assert_eq!(text.parse(), Ok(mark));
    }
    for text in ["", "=", "==7", "-7", "seven"] {
        assert_eq!(
            text.parse::<PageCursor>(),
            Err(ReadError::BadCursor),
            "{text:?}"
        );
    }
}

/// A list moves when a user did something or a turn ended, and not with every word of the model.
#[test]
fn a_thread_changes_with_what_a_user_does_and_with_the_end_of_a_turn() {
    let mut life = SimulatedThread::new();
    let updated_at = |life: &SimulatedThread| {
        let shown = Summary::of(life.owner.thread());
        shown.expect("a thread that was started").updated_at
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
        let before = updated_at(&life);
        life.now = life.now.plus_ms(1000);
        life.say(line);
        let after = if changes { life.now } else { before };
        assert_eq!(updated_at(&life), after, "{line}");
    }
}

/// They are those of the first message that has any, cut to what a list can show.
#[test]
fn a_list_shows_the_first_words() {
    let mut life = SimulatedThread::new();
    let long = "ä".repeat(401);
    for (turn, text, preview) in [
        ("t1", "", ""),
        ("t2", long.as_str(), &long[..800]),
        ("t3", "bye", &long[..800]),
    ] {
        life.order(fixtures::start_turn(turn, TurnKind::Work, Some(text)));
        life.settle();
        let shown = Summary::of(life.owner.thread()).map(|it| it.preview);
        assert_eq!(shown.as_deref(), Some(preview), "{turn}");
        life.say("done");
    }
}

#[test]
fn a_thread_has_the_name_and_the_place_it_was_given() {
    let mut life = SimulatedThread::new();
    for (line, name, archived) in [
        ("rename \"n\"", Some("n"), false),
        ("archive", Some("n"), true),
        ("rename", None, true),
        ("unarchive", None, false),
    ] {
        life.say(line);
        let thread = life.owner.thread();
        assert_eq!(thread.name(), name, "{line}");
        assert_eq!(thread.is_archived(), archived, "{line}");
    }
}
