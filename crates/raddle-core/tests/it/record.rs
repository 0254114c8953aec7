//! Rules of single records and of their content.

use raddle_core::*;
use serde_json::json;

use crate::fixtures;
use crate::simulated::SimulatedThread;

/// Ids that a client holds and effects in the world survive loss of power; text survives a crash of
/// the process.
#[test]
fn records_have_the_durability_they_need() {
    let mut sim = SimulatedThread::new();
    for (line, expected) in [
        ("start t1 \"hi\"", Class::Power),
        ("message i1", Class::Process),
        ("text i1 \"hel\"", Class::Process),
        ("said i1 \"hello\"", Class::Process),
        ("plan", Class::Process),
        ("diff \"d\"", Class::Process),
        ("warn \"w\"", Class::Process),
        ("call i2 shell \"ls\" run", Class::Process),
        ("done", Class::Power),
        ("printed i2 \"a\"", Class::Process),
        ("asks i2", Class::Power),
        ("answer 0 ann decline", Class::Power),
        ("steer t1 \"more\"", Class::Power),
        ("ended i2 ok \"a\"", Class::Power),
        ("interrupt t1", Class::Power),
        ("rename \"n\"", Class::Power),
    ] {
        sim.report(fixtures::command(line, sim.owner.thread(), sim.now));
        match sim.owner.step(sim.now) {
            Step::Append { class, records, .. } => {
                assert_eq!(class, expected, "{line}: {records:?}");
                let last = records.last().expect("a record").seq;
                sim.owner.appended(Ok(last));
            }
            other => panic!("{line}: an append was expected, not {other:?}"),
        }
    }
}

#[test]
fn a_span_holds_its_first_number_and_not_the_one_after_it() {
    let span = |until: Option<u64>| Span {
        from: Seq(3),
        until: until.map(Seq),
    };
    for (until, seq, holds) in [
        (Some(5), 2, false),
        (Some(5), 3, true),
        (Some(5), 4, true),
        (Some(5), 5, false),
        (None, 2, false),
        (None, 5, true),
    ] {
        assert_eq!(span(until).holds(Seq(seq)), holds, "{seq} until {until:?}");
    }
}

/// Journals of the first level do not name it, and one of a newer version keeps its own.
#[test]
fn an_owner_that_names_no_level_knows_the_first() {
    for (stored, level) in [(None, 1), (Some(2), 2)] {
        let mut owned =
            json!({ "epoch": 1, "node": "a", "found": 0, "reserved": 10, "version": "1" });
        if let Some(level) = stored {
            owned["level"] = json!(level);
        }
        let line = json!({ "seq": 1, "at": 0, "body": { "event": { "owned": owned } } });
        let record: Record = serde_json::from_value(line.clone()).expect("a record");
        let mut thread = Thread::new();
        assert_eq!(
            thread.level(),
            LEVEL,
            "nobody wrote more than is known here"
        );
        thread.apply(&record);
        assert_eq!(thread.level(), level);
        assert_eq!(serde_json::to_value(&record).expect("JSON"), line);
    }
}

#[test]
fn arguments_parse_to_an_object_or_an_error() {
    let nested = |depth: usize| (1..depth).fold(json!({}), |it, _| json!({ "a": it }));
    let deep = nested(ToolCall::DEPTH_MAX);
    let too_deep = nested(ToolCall::DEPTH_MAX + 1);
    let (deep_text, too_deep_text) = (deep.to_string(), too_deep.to_string());
    for (arguments, expected) in [
        ("", Ok(json!({}))),
        (" \n", Ok(json!({}))),
        (" {\"a\": 1}", Ok(json!({ "a": 1 }))),
        (&deep_text, Ok(deep.clone())),
        (&too_deep_text, Err("they are more than 64 deep")),
        ("[]", Err("they are no JSON object")),
        (
            "{\"a\": ",
            Err("they are no JSON: EOF while parsing a value at line 1 column 5"),
        ),
    ] {
        let call = ToolCall {
            id: String::new(),
            tool: String::new(),
            arguments: arguments.to_owned(),
            freeform: false,
            alone: false,
        };
        let object = call.object().map_err(|error| error.to_string());
        assert_eq!(object, expected.map_err(str::to_owned), "{arguments}");
    }
}

#[test]
fn the_url_of_a_blob_means_that_blob() {
    let blob = Blob {
        hash: "00ff".to_owned(),
        bytes: 12,
        media: "image/png".to_owned(),
    };
    assert_eq!(blob.url(), "raddle-blob:00ff/12/image/png");
    assert_eq!(Blob::of_url(&blob.url()), Some(blob));
    for url in [
        "https://example.com/00ff/12/image/png",
        "raddle-blob:00ff",
        "raddle-blob:00ff/many/image/png",
        "raddle-blob:00ff/12",
    ] {
        assert_eq!(Blob::of_url(url), None, "{url}");
    }
}

/// The text for the model estimates the growth of the context.
#[test]
fn injected_items_weigh_as_much_as_their_text() {
    let call = ToolCall {
        id: "c-1".to_owned(),
        tool: "shell".to_owned(),
        arguments: "{\"a\":1}".to_owned(),
        freeform: false,
        alone: false,
    };
    let input = vec![
        Input::text("12345"),
        Input::Audio {
            url: "https://example.com/a".to_owned(),
        },
        Input::text("67"),
    ];
    let output = InjectedItem::Output {
        call: "c-1".to_owned(),
        output: Output::text("12345678"),
    };
    let text = || "1234".to_owned();
    for (injected, bytes) in [
        (InjectedItem::User { input }, 7),
        (InjectedItem::Developer { text: text() }, 4),
        (InjectedItem::Note { text: text() }, 4),
        (InjectedItem::Assistant { text: text() }, 4),
        (InjectedItem::Call(call), 3 + 5 + 7),
        (output, 3 + 8),
    ] {
        assert_eq!(injected.bytes(), bytes, "{injected:?}");
    }
}
