use serde_json::json;

use super::*;

fn decision(event: HookEvent, code: i32, stdout: &str, stderr: &str) -> Decision {
    let exit = HookExit {
        code: Some(code),
        stdout: stdout.as_bytes().to_vec(),
        stderr: stderr.as_bytes().to_vec(),
        is_truncated: false,
    };
    Decision::of(event, &exit)
}

fn specific(members: Value) -> String {
    json!({ "hookSpecificOutput": members }).to_string()
}

#[test]
fn a_hook_asks_or_denies_and_never_allows() {
    let deny = |why: &str| HookRuling::Deny(why.to_owned());
    let ask = |why: &str| HookRuling::Ask(why.to_owned());
    let by =
        |it: &str| specific(json!({ "permissionDecision": it, "permissionDecisionReason": "w" }));
    for (code, stdout, stderr, expected) in [
        (0, String::new(), "", HookRuling::Pass),
        (0, "some text".to_owned(), "", HookRuling::Pass),
        (2, String::new(), "not now\n", deny("not now")),
        (2, String::new(), "", deny(NO_REASON)),
        (0, by("deny"), "", deny("w")),
        (0, by("ask"), "", ask("w")),
        (0, by("allow"), "", HookRuling::Pass),
        (
            0,
            json!({"decision": "block", "reason": "w"}).to_string(),
            "",
            deny("w"),
        ),
        (
            0,
            json!({"decision": "approve"}).to_string(),
            "",
            HookRuling::Pass,
        ),
        (
            0,
            json!({"continue": false, "stopReason": "w"}).to_string(),
            "",
            deny("w"),
        ),
    ] {
        let actual = decision(HookEvent::PreToolUse, code, &stdout, stderr);
        assert_eq!(actual.ruling, expected, "{stdout}");
        assert!(!actual.has_failed(), "{stdout}");
    }
}

#[test]
fn a_hook_that_fails_decides_nothing() {
    for (code, stdout) in [
        (1, String::new()),
        (0, "{".to_owned()),
        (0, json!({"decision": "maybe"}).to_string()),
        (0, specific(json!({ "permissionDecision": "perhaps" }))),
        (0, specific(json!({ "updatedInput": 7 }))),
    ] {
        let actual = decision(HookEvent::PreToolUse, code, &stdout, "oops");
        assert_eq!(actual.ruling, HookRuling::Pass, "{stdout}");
        assert!(
            actual.has_failed() && actual.updated_input.is_none(),
            "{stdout}"
        );
    }
}

#[test]
fn text_is_context_where_a_hook_decides_nothing_else() {
    for (event, expected) in [
        (HookEvent::SessionStart, Some("be kind")),
        (HookEvent::UserPromptSubmit, Some("be kind")),
        (HookEvent::PostToolUse, None),
        (HookEvent::Stop, None),
    ] {
        let actual = decision(event, 0, "be kind\n", "");
        assert_eq!(actual.context.as_deref(), expected, "{event:?}");
    }
    let answer = specific(json!({ "additionalContext": "note" }));
    let actual = decision(HookEvent::PostToolUse, 0, &answer, "");
    assert_eq!(actual.context.as_deref(), Some("note"));
    let long = "x".repeat(CONTEXT_BYTES_MAX + 1);
    let actual = decision(HookEvent::SessionStart, 0, &long, "");
    assert!(
        actual
            .context
            .is_some_and(|it| it.len() < long.len() + 4 && it.ends_with('…'))
    );
}

#[test]
fn a_hook_that_fails_blocks_only_if_it_must() {
    let failed = Decision::failed("it was ended after 60 s".to_owned());
    assert_eq!(failed.ruling, HookRuling::Pass);
    let blocked = failed.blocking_if_failed("org.example hooks/check");
    let why = "The hook org.example hooks/check failed, and blocks what it cannot check: it was \
               ended after 60 s";
    assert_eq!(blocked.ruling, HookRuling::Deny(why.to_owned()));
    assert!(blocked.has_failed());
    let passed = Decision::default();
    assert_eq!(passed.clone().blocking_if_failed("x"), passed);
}

#[test]
fn the_result_of_a_plugins_hook_is_bounded() {
    let long = "x".repeat(1 << 20);
    let kept = format!("{}…", "x".repeat(CONTEXT_BYTES_MAX));
    let of = |result: Value| Decision::of_result(HookEvent::PreToolUse, &result);
    let denied = of(json!({ "decision": "block", "reason": long }));
    assert_eq!(denied.ruling, HookRuling::Deny(kept.clone()));
    let warned = of(json!({ "systemMessage": long }));
    assert_eq!(warned.entries, [HookEntry::Warning(kept)]);
    let changed = of(json!({ "hookSpecificOutput": { "updatedInput": { "text": long } } }));
    assert!(changed.has_failed());
    assert_eq!(changed.updated_input, None);
}
