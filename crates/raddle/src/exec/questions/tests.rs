use super::*;

fn question(options: &[&str], is_other: bool) -> Value {
    let option = |label: &&str| json!({ "label": label, "description": "" });
    let options: Vec<Value> = options.iter().map(option).collect();
    json!({
        "id": "q", "header": "", "question": "Well?", "isOther": is_other,
        "options": (!options.is_empty()).then_some(options),
    })
}

#[test]
fn an_option_is_meant_or_it_is_asked_again() {
    let yes = &["Yes, go on", "No"][..];
    let allow = &["Allow", "Always allow", "Decline"][..];
    for (options, is_other, typed, wanted) in [
        (yes, false, "y", Some("Yes, go on")),
        (yes, false, "YES", Some("Yes, go on")),
        (yes, false, "n", Some("No")),
        (yes, false, "2", Some("No")),
        (yes, false, "3", None),
        (yes, false, "0", None),
        (yes, false, "perhaps", None),
        (yes, true, "perhaps", Some("perhaps")),
        // What nobody offered is no answer, and least of all a no.
        (allow, false, "y", None),
        (allow, true, "y", None),
        (allow, true, "no", None),
        (allow, false, "al", None),
        (allow, false, "always", Some("Always allow")),
        (allow, false, "allow", Some("Allow")),
        (&[], false, "y", Some("y")),
        (&[], false, "2", Some("2")),
    ] {
        let question = serde_json::from_value(question(options, is_other)).expect("a question");
        let found = chosen(&question, typed);
        assert_eq!(found.as_deref(), wanted, "{typed} {options:?} {is_other}");
    }
}

fn open(question: ServerQuestion) -> TerminalQuestion {
    TerminalQuestion {
        question: OpenQuestion {
            id: RequestId::Integer(1),
            question,
        },
        subjects: Vec::new(),
        answers: BTreeMap::new(),
        page: None,
    }
}

#[test]
fn all_of_a_question_can_be_seen() {
    let params = json!({
        "threadId": "019a0000-0000-7000-8000-000000000001", "turnId": "t", "itemId": "i",
        "startedAtMs": 0, "command": "ls",
    });
    let params = serde_json::from_value(params).expect("a question");
    let mut open = open(ServerQuestion::Command(params));
    for (typed, is_answered, page) in [
        ("", false, None),
        ("?", false, Some(0)),
        ("?", false, Some(1)),
        ("y", true, Some(1)),
    ] {
        assert_eq!(open.said(typed).is_some(), is_answered, "{typed}");
        assert_eq!(open.shown().page, page, "{typed}");
    }
}

#[test]
fn questions_of_one_id_are_answered_at_once() {
    let two = [question(&[], false), question(&[], false)];
    let params = json!({
        "threadId": "019a0000-0000-7000-8000-000000000001", "turnId": "t", "itemId": "i",
        "questions": two, "isBlocking": true,
    });
    let params = serde_json::from_value(params).expect("a question");
    let mut open = open(ServerQuestion::Question(params));
    let reply = open.said("red").expect("a reply");
    assert_eq!(
        reply.answer["answers"],
        json!({ "q": { "answers": ["red"] } })
    );
}
