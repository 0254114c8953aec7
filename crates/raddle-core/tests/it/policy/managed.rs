use raddle_core::policy::{Layer, ManagedLimits, Policy, SandboxKind};
use raddle_core::{Measure, Price, Sandbox, Scope, Settings, SpendLimits};

use super::{policy, script};

/// The operator's limits bind commands that clients run themselves; the user's rules do not.
#[test]
fn managed_rules_bind_clients() {
    let all = [
        "deny managed command git push",
        "deny managed command rm",
        "deny command touch",
        "ask managed command make",
    ];
    let mut policy = policy(&all);
    let objection_text = |policy: &Policy, line: &str, sandbox: &Sandbox| {
        let objection = policy.objection(&script(line), sandbox);
        objection.unwrap_or_else(|| "nothing".to_owned())
    };
    let open = Sandbox::FullAccess;
    for (line, expected) in [
        ("ls", "nothing"),
        ("touch x", "nothing"),
        ("make x", "nothing"),
        ("git push", "the managed rule `command git push` forbids it"),
        ("ls ; /bin/rm x", "the managed rule `command rm` forbids it"),
        ("~ ?", "may forbid it, which is unknown before it runs"),
    ] {
        let actual = objection_text(&policy, line, &open);
        assert!(actual.contains(expected), "{line}: {actual}");
    }
    policy.managed.sandboxes = Some(vec![SandboxKind::ReadOnly]);
    policy.managed.network_off = true;
    for (sandbox, expected) in [
        (
            open,
            "the managed policy does not allow the sandbox danger-full-access; choose one of: read-only",
        ),
        (
            Sandbox::ReadOnly {
                roots: Vec::new(),
                network: false,
                reads: None,
            },
            "nothing",
        ),
        (
            Sandbox::ReadOnly {
                roots: Vec::new(),
                network: true,
                reads: None,
            },
            "the managed policy keeps the network off; choose a sandbox without it",
        ),
    ] {
        assert_eq!(objection_text(&policy, "ls", &sandbox), expected);
    }
}

/// A program that the configuration names runs without a sandbox. Where the operator allows only
/// sandboxes it does not run, unless the operator allows this very program.
#[test]
fn managed_rules_bind_configured_programs() {
    let all = [
        "deny managed command rm",
        "allow beyond managed command pass show",
        "allow beyond command gpg",
        "allow managed command cat",
    ];
    let open = policy(&all);
    let mut sandboxed = policy(&all);
    sandboxed.managed.sandboxes = Some(vec![SandboxKind::ReadOnly, SandboxKind::WorkspaceWrite]);
    for (line, in_open, in_sandboxed) in [
        ("pass show key", true, true),
        ("pass", true, false),
        ("gpg -d key", true, false),
        ("cat key", true, false),
        ("rm key", false, false),
    ] {
        for (policy, may_run) in [(&open, in_open), (&sandboxed, in_sandboxed)] {
            let objection = policy.objection_to_configured(&script(line));
            assert_eq!(objection.is_none(), may_run, "{line}: {objection:?}");
        }
    }
    let mut offline = policy(&all);
    offline.managed.network_off = true;
    assert_eq!(offline.objection_to_configured(&script("pass")), None);
}

#[test]
fn hosts_are_closed_by_layer_and_only_user_escalation_is_removed() {
    let policy = policy(&[
        "deny managed host a.example.com",
        "ask host b.example.com",
        "allow host c.example.com",
        "allow beyond command make",
        "allow beyond managed command git",
    ]);
    assert_eq!(policy.closed_hosts(&[Layer::Managed]), ["a.example.com"]);
    let both = policy.closed_hosts(&[Layer::Managed, Layer::User]);
    assert_eq!(both, ["a.example.com", "b.example.com"]);
    let beyond: Vec<bool> = policy
        .without_escalation()
        .rules
        .iter()
        .map(|it| it.beyond)
        .collect();
    assert_eq!(beyond, [false, false, false, false, true]);
}

/// A walk through a folder leaves out what rules close below it, and nothing that was approved.
#[test]
fn closed_below_lists_the_patterns_inside_a_folder() {
    let rules = [
        "deny read **/.env",
        "ask read /w/private",
        "allow read /w/open",
        "deny write /w/locked",
    ];
    let closed = |folder: &str| -> Vec<String> {
        let closed = policy(&rules).closed_below(folder);
        closed.iter().map(ToString::to_string).collect()
    };
    assert_eq!(closed("/w"), ["**/.env", "/w/private"]);
    assert_eq!(closed("/w/private/deep"), ["**/.env"]);
}

/// The operator's budgets hold beside the thread's own, and the thread cannot raise them.
#[test]
fn budgets_of_the_operator_override_those_of_the_thread() {
    let limits = ManagedLimits {
        turn_budget: SpendLimits {
            tokens: Some(100),
            ..SpendLimits::default()
        },
        thread_budget: SpendLimits {
            nano_usd: Some(50),
            ..SpendLimits::default()
        },
        ..ManagedLimits::default()
    };
    let mut settings = Settings::default();
    settings.turn_budget.tokens = Some(1_000);
    let price = Price::default();
    for (price, used, expected) in [
        (Some(&price), (Scope::Turn, Measure::Tokens, 99), None),
        (
            Some(&price),
            (Scope::Turn, Measure::Tokens, 100),
            Some((Some(100), 100)),
        ),
        (Some(&price), (Scope::Thread, Measure::Tokens, 100), None),
        (
            Some(&price),
            (Scope::Thread, Measure::Usd, 51),
            Some((Some(51), 50)),
        ),
        (None, (Scope::Thread, Measure::Usd, 0), Some((None, 50))),
    ] {
        let failure = limits.call_objection(&settings, price, &[used]);
        let budget = failure.map(|it| it.budget.expect("a budget"));
        assert_eq!(budget.map(|it| (it.spent, it.limit)), expected, "{used:?}");
    }
    let none = ManagedLimits::default();
    let used = [(Scope::Turn, Measure::Tokens, u64::MAX)];
    assert_eq!(none.call_objection(&settings, None, &used), None);
}

/// A denial binds clients, whoever wrote it. A managed rule that asks does too, because a client's
/// call cannot be approved.
#[test]
fn rules_about_tools_bind_clients() {
    let mut policy = policy(&[
        "deny managed tool web.*",
        "deny tool mcp__files__*",
        "ask managed tool mail.send",
        "ask tool notes.*",
        "allow managed tool mail.*",
    ]);
    let settings = Settings::default();
    for (names, expected) in [
        (
            &["web.get"][..],
            "the managed rule `tool web.*` forbids it; ask the operator",
        ),
        (
            &["files.read", "mcp__files__read"],
            "the rule `tool mcp__files__*` forbids it",
        ),
        (
            &["mail.send"],
            "the managed rule `tool mail.send` requires an approval",
        ),
        (&["mail.read"], "nothing"),
        (&["notes.add"], "nothing"),
    ] {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        let objection = policy.objection_to_tool(&names, &settings);
        let objection = objection.unwrap_or_else(|| "nothing".to_owned());
        assert!(objection.starts_with(expected), "{names:?}: {objection}");
    }
    // The thread was started before the operator allowed less.
    policy.managed.sandboxes = Some(Vec::new());
    let objection = policy.objection_to_tool(&["notes.add".to_owned()], &settings);
    let expected = "the managed policy does not allow the sandbox read-only; it allows none";
    assert_eq!(objection.as_deref(), Some(expected));
}
