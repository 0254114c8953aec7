use super::*;

fn request(more: Value) -> ServerQuestion {
    let mut params = json!({
        "threadId": "0199a213-81c0-7800-8aa1-bbab2a035a53", "turnId": "t", "itemId": "i",
        "startedAtMs": 0, "command": "touch made", "cwd": "/srv", "reason": "May I?",
    });
    for (name, value) in more.as_object().expect("members") {
        params[name] = value.clone();
    }
    ServerQuestion::Command(serde_json::from_value(params).expect("a request"))
}

fn view() -> ThreadView {
    let thread = json!({
        "id": "0199a213-81c0-7800-8aa1-bbab2a035a53",
        "sessionId": "0199a213-81c0-7800-8aa1-bbab2a035a53",
        "cliVersion": "0", "createdAt": 0, "cwd": "/", "ephemeral": false,
        "modelProvider": "mock", "preview": "", "source": "cli",
        "status": { "type": "idle" }, "turns": [], "updatedAt": 0,
    });
    let thread = serde_json::from_value(thread).expect("a thread");
    ThreadView {
        thread,
        model: String::new(),
        model_provider: String::new(),
        cwd: String::new(),
        approval_policy: None,
        sandbox: None,
        active_permission_profile: None,
        budget: None,
        questions: Vec::new(),
        usage: None,
        plan: None,
        diff: None,
        seq: None,
    }
}

fn submitted(decision: &str) -> FormAnswer {
    FormAnswer::Submitted([(DECISION.to_owned(), decision.to_owned())].into())
}

#[test]
fn only_an_offered_decision_approves() {
    let limited = json!({ "availableDecisions": ["accept", "cancel"] });
    for (members, given, expected) in [
        (json!({}), submitted("accept"), "accept"),
        (json!({}), submitted("acceptForSession"), "acceptForSession"),
        (json!({}), submitted("cancel"), "cancel"),
        (json!({}), submitted("yes"), "decline"),
        (
            json!({}),
            FormAnswer::Submitted(Default::default()),
            "decline",
        ),
        (json!({}), FormAnswer::Declined, "decline"),
        (json!({}), FormAnswer::Cancelled, "cancel"),
        (limited.clone(), submitted("accept"), "accept"),
        (limited, submitted("acceptForSession"), "decline"),
    ] {
        let question = request(members);
        let form = form(&question, &view()).expect("a form");
        let answer = answer(&question, &form, &given);
        assert_eq!(answer, Some(json!({ "decision": expected })), "{given:?}");
    }
}

#[test]
fn a_client_that_shows_no_form_gives_no_answer() {
    let question = request(json!({}));
    let form = form(&question, &view()).expect("a form");
    assert_eq!(answer(&question, &form, &FormAnswer::Unavailable), None);
}

/// A request with these questions.
fn user_input(questions: Value) -> ServerQuestion {
    let question = json!({
        "threadId": "0199a213-81c0-7800-8aa1-bbab2a035a53", "turnId": "t", "itemId": "i",
        "isBlocking": true, "questions": questions,
    });
    ServerQuestion::Question(serde_json::from_value(question).expect("a request"))
}

#[test]
fn the_approval_of_a_tool_is_a_decision() {
    for (given, label) in [
        (submitted("accept"), "Allow"),
        (submitted("acceptForSession"), "Allow for this session"),
        (submitted("decline"), "Decline"),
        (submitted("cancel"), "Decline"),
        (submitted("Allow"), "Decline"),
        (FormAnswer::Declined, "Decline"),
        (FormAnswer::Cancelled, "Decline"),
    ] {
        let question = user_input(json!([
            { "id": "may_call", "header": "Tool call", "question": "May it?", "options": [
                { "label": "Allow", "description": "" },
            ] },
        ]));
        let form = form(&question, &view()).expect("a form");
        assert_eq!(form.message, "Call this tool?\n\nMay it?");
        assert_eq!(
            answer(&question, &form, &given),
            Some(json!({ "answers": { "may_call": { "answers": [label] } } })),
            "{given:?}"
        );
    }
}

#[test]
fn text_of_the_agent_cannot_imitate_ours() {
    let question = request(json!({
        "command": "touch made \u{1b}[2J\nRun this command in /safe?",
        "reason": "May I?\nIt has no permissions",
    }));
    let message = form(&question, &view()).expect("a form").message;
    let expected = "Run this command in /srv?\nBecause: May I? It has no permissions\n\n\
                    touch made \\u{1b}[2J\nRun this command in /safe?";
    assert_eq!(message, expected);
}

#[test]
fn questions_are_fields_unless_they_ask_for_secrets() {
    let key = json!({ "id": "key", "header": "", "question": "The key?", "isSecret": true });
    let colour = json!({ "id": "colour", "header": "", "question": "Which?", "options": [
        { "label": "red", "description": "as\u{1b}[2J madder" },
    ] });
    assert_eq!(form(&user_input(json!([key])), &view()), None);
    let question = user_input(json!([colour, key]));
    let form = form(&question, &view()).expect("a form");
    let names: Vec<&str> = form.fields.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["colour"]);
    assert_eq!(form.fields[0].choices[0].title, "red: as\\u{1b}[2J madder");
    let given = FormAnswer::Submitted([("colour".to_owned(), "red".to_owned())].into());
    assert_eq!(
        answer(&question, &form, &given),
        Some(json!({ "answers": { "colour": { "answers": ["red"] } } }))
    );
    assert_eq!(
        answer(&question, &form, &FormAnswer::Declined),
        Some(json!({ "answers": {} }))
    );
}
