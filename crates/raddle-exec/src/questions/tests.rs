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
fn input_selects_an_option_or_is_rejected() {
    let yes_or_no = &["Yes, go on", "No"][..];
    let allow = &["Allow", "Always allow", "Decline"][..];
    for (options, is_other, typed, expected) in [
        (yes_or_no, false, "y", Some("Yes, go on")),
        (yes_or_no, false, "YES", Some("Yes, go on")),
        (yes_or_no, false, "n", Some("No")),
        (yes_or_no, false, "2", Some("No")),
        (yes_or_no, false, "3", None),
        (yes_or_no, false, "0", None),
        (yes_or_no, false, "perhaps", None),
        (yes_or_no, true, "perhaps", Some("perhaps")),
        // Input that matches no option is no answer, and least of all a denial.
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
        let actual = chosen(&question, typed);
        assert_eq!(
            actual.as_deref(),
            expected,
            "{typed} {options:?} {is_other}"
        );
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
        form: FormProgress::default(),
        choice: None,
        page: None,
    }
}

#[test]
fn a_question_can_be_shown_in_full() {
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
        assert_eq!(open.handle_line(typed).is_some(), is_answered, "{typed}");
        assert_eq!(open.shown().page, page, "{typed}");
    }
}

#[test]
fn questions_with_the_same_id_get_one_answer() {
    let two = [question(&[], false), question(&[], false)];
    let params = json!({
        "threadId": "019a0000-0000-7000-8000-000000000001", "turnId": "t", "itemId": "i",
        "questions": two, "isBlocking": true,
    });
    let params = serde_json::from_value(params).expect("a question");
    let mut open = open(ServerQuestion::Question(params));
    let reply = open.handle_line("red").expect("a reply");
    assert_eq!(
        reply.answer["answers"],
        json!({ "q": { "answers": ["red"] } })
    );
}
