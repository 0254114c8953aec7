//! Rulings on acts: the rule that decides, and when approval is needed.

/// Digests of approvals: one value for each kind of act.
mod approval_digests;
/// Variables of commands: their names, and where they are set.
mod command_variables;
/// Limits beside acts: of clients, folder walks and hosts.
mod managed;

use std::collections::BTreeSet;

use proptest::prelude::*;
use raddle_core::policy::{
    Act, ActKind, Amendment, ApprovalKind, DeadlineAction, HostPattern, Layer, ManagedLimits,
    McpRisk, ParsedScript, PathPattern, Policy, Rule, Ruling, SandboxKind, Subject,
    UnattendedPolicy, Verdict, proposed,
};
use raddle_core::{ApprovalPolicy, Grant, Sandbox, Settings};
use serde_json::json;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Parses a rule: `deny command rm`, `allow beyond write /a`, `ask managed host *.example.com`.
fn rule(line: &str) -> Rule {
    let mut words = words(line);
    let verdict = match words.remove(0).as_str() {
        "allow" => Verdict::Allow,
        "ask" => Verdict::Ask,
        "deny" => Verdict::Deny,
        other => panic!("{other}"),
    };
    let mut take = |word: &str| {
        let is_it = words[0] == word;
        if is_it {
            words.remove(0);
        }
        is_it
    };
    let (beyond, managed) = (take("beyond"), take("managed"));
    let kind = words.remove(0);
    let rest = words.join(" ");
    Rule {
        layer: if managed { Layer::Managed } else { Layer::User },
        subject: match kind.as_str() {
            "command" => Subject::Command(words),
            "write" => Subject::Write(PathPattern::parse(&rest).expect("a good one")),
            "read" => Subject::Read(PathPattern::parse(&rest).expect("a good one")),
            "host" => Subject::Host(HostPattern::parse(&rest).expect("a good one")),
            "tool" => Subject::Tool(rest),
            other => panic!("{other}"),
        },
        verdict,
        beyond,
        reason: None,
    }
}

fn script(line: &str) -> ParsedScript {
    let is_plain = !line.starts_with('~');
    let line = line.trim_start_matches('~').trim();
    ParsedScript {
        line: line.to_owned(),
        commands: line
            .split(';')
            .map(|it| words(&it.replace('?', "\0")))
            .collect(),
        plain: is_plain,
    }
}

/// Parses an act: `run ls ; git push`, `run beyond ls`, `run ~ ls` for a script that is not plain,
/// `write /a /b`, `edit /a /b` for a change of `/b` that reads both, `seek /a` for one that does
/// not apply there, `read /a`, `connect host`, `call name`.
fn act(line: &str) -> Act {
    let (kind, rest) = line.split_once(' ').expect("two words");
    let (beyond, rest) = match rest.strip_prefix("beyond ") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let kind = match kind {
        "run" => ActKind::Command {
            script: script(rest),
            cwd: "/w".to_owned(),
            beyond,
        },
        "write" => ActKind::Write {
            paths: words(rest),
            reads: Vec::new(),
            beyond,
        },
        // The last is written, all are read.
        "edit" => ActKind::Write {
            paths: words(rest).into_iter().next_back().into_iter().collect(),
            reads: words(rest),
            beyond,
        },
        "seek" => ActKind::Write {
            paths: Vec::new(),
            reads: words(rest),
            beyond,
        },
        "read" => ActKind::Read {
            path: rest.to_owned(),
        },
        "connect" => ActKind::Connect {
            host: rest.to_owned(),
        },
        "call" => ActKind::Tool {
            name: rest.to_owned(),
        },
        "mcp" => ActKind::McpTool {
            name: rest.to_owned(),
            risk: McpRisk::Unknown,
        },
        "mcp-harmless" => ActKind::McpTool {
            name: rest.to_owned(),
            risk: McpRisk::DeclaredHarmless,
        },
        "mcp-approved" => ActKind::McpTool {
            name: rest.to_owned(),
            risk: McpRisk::Approved,
        },
        "mcp-prompt" => ActKind::McpTool {
            name: rest.to_owned(),
            risk: McpRisk::Prompt,
        },
        other => panic!("{other}"),
    };
    Act {
        kind,
        digest: format!("digest of {line}"),
        reason: None,
    }
}

fn approval(name: &str) -> ApprovalPolicy {
    match name {
        "untrusted" => ApprovalPolicy::Untrusted,
        "on-request" => ApprovalPolicy::OnRequest,
        "never" => ApprovalPolicy::Never,
        "granular" => ApprovalPolicy::Granular(json!({"sandbox_approval": true, "rules": true})),
        "no-rules" => ApprovalPolicy::Granular(json!({"sandbox_approval": true, "rules": false})),
        "no-sandbox" => ApprovalPolicy::Granular(json!({"rules": true})),
        other => panic!("{other}"),
    }
}

/// An approval policy, and perhaps a sandbox: `untrusted`, `untrusted in full-access`.
fn settings(names: &str) -> Settings {
    let (approval_name, sandbox) = names.split_once(" in ").unwrap_or((names, "read-only"));
    Settings {
        approval: approval(approval_name),
        sandbox: match sandbox {
            "read-only" => Sandbox::default(),
            "full-access" => Sandbox::FullAccess,
            "external" => Sandbox::External { network: false },
            other => panic!("{other}"),
        },
        ..Settings::default()
    }
}

fn policy(rules: &[&str]) -> Policy {
    Policy {
        rules: rules.iter().map(|it| rule(it)).collect(),
        ..Policy::default()
    }
}

fn judged(rules: &[&str], approval: &str, line: &str) -> Ruling {
    policy(rules).judge(&act(line), &settings(approval), &BTreeSet::new())
}

/// Each line: rules, approval policy, act, verdict and its source.
#[test]
fn acts_are_judged_as_listed() {
    let text = include_str!("policy/acts.txt");
    let mut count = 0;
    for line in text
        .lines()
        .filter(|it| !it.is_empty() && !it.starts_with('#'))
    {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [rules, approval, act, expected] = cells[..] else {
            panic!("not four cells: {line}");
        };
        let rules: Vec<&str> = rules
            .split(',')
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .collect();
        let ruling = judged(&rules, approval, act);
        let actual = format!("{:?} by {}", ruling.verdict, ruling.rule).replace('\0', "?");
        assert_eq!(actual, expected, "{line}");
        count += 1;
    }
    assert!(count >= 60, "only {count} lines");
}

#[test]
fn a_session_approval_covers_one_act_and_no_denied_one() {
    let granted = BTreeSet::from(["digest of run beyond touch x".to_owned()]);
    let judge = |rules: &[&str], line: &str| {
        let ruling = policy(rules).judge(&act(line), &settings("on-request"), &granted);
        (ruling.verdict, ruling.rule)
    };
    let session = (Verdict::Allow, "session".to_owned());
    assert_eq!(judge(&[], "run beyond touch x"), session);
    assert_eq!(judge(&["ask command touch"], "run beyond touch x"), session);
    assert_eq!(
        judge(&["deny command touch"], "run beyond touch x").0,
        Verdict::Deny
    );
    assert_eq!(judge(&[], "run beyond touch y").0, Verdict::Ask);
}

/// Clients show the files, so the approval covers the files: any content, in this sandbox.
#[test]
fn a_session_approval_of_files_covers_these_files_in_this_sandbox() {
    let read_only_limits = ManagedLimits {
        sandboxes: Some(vec![SandboxKind::ReadOnly]),
        ..ManagedLimits::default()
    };
    let narrow = settings("on-request");
    let wide = Settings {
        sandbox: Sandbox::ReadOnly {
            roots: Vec::new(),
            network: true,
            reads: None,
        },
        ..narrow.clone()
    };
    let judge =
        |rules: &[&str], limits: ManagedLimits, settings: &Settings, line: &str, granted| {
            let policy = Policy {
                managed: limits,
                ..policy(rules)
            };
            policy.judge(&act(line), settings, granted)
        };
    let none = BTreeSet::new();
    let first_ruling = judge(
        &[],
        ManagedLimits::default(),
        &narrow,
        "write beyond /a /b",
        &none,
    );
    let granted = BTreeSet::from_iter(first_ruling.files);
    assert_eq!(granted.len(), 2);
    for (rules, limits, settings, line, expected) in [
        (
            &[][..],
            ManagedLimits::default(),
            &narrow,
            "write beyond /b",
            Verdict::Allow,
        ),
        (
            &[],
            ManagedLimits::default(),
            &narrow,
            "write beyond /b /a",
            Verdict::Allow,
        ),
        (
            &["ask write /a"],
            ManagedLimits::default(),
            &narrow,
            "write beyond /a",
            Verdict::Allow,
        ),
        (
            &[],
            ManagedLimits::default(),
            &narrow,
            "write beyond /a /c",
            Verdict::Ask,
        ),
        (
            &[],
            ManagedLimits::default(),
            &narrow,
            "write beyond /a/b",
            Verdict::Ask,
        ),
        (
            &[],
            ManagedLimits::default(),
            &narrow,
            "run beyond touch /a",
            Verdict::Ask,
        ),
        (
            &[],
            ManagedLimits::default(),
            &wide,
            "write beyond /a",
            Verdict::Ask,
        ),
        (
            &["deny write /a"],
            ManagedLimits::default(),
            &narrow,
            "write beyond /a",
            Verdict::Deny,
        ),
        (
            &[],
            read_only_limits,
            &narrow,
            "write beyond /a",
            Verdict::Deny,
        ),
    ] {
        let ruling = judge(rules, limits, settings, line, &granted);
        assert_eq!(ruling.verdict, expected, "{rules:?}: {line}");
        assert_eq!(
            ruling.files.is_empty(),
            expected != Verdict::Ask || !line.starts_with("write")
        );
    }
}

#[test]
fn limits_of_the_operator_override_users_and_rules() {
    let limits = ManagedLimits {
        approvals: Some(vec![ApprovalKind::Untrusted, ApprovalKind::OnRequest]),
        sandboxes: Some(vec![SandboxKind::ReadOnly, SandboxKind::WorkspaceWrite]),
        network_off: true,
        unattended: Some(UnattendedPolicy::Deny { after_ms: 5 }),
        ..ManagedLimits::default()
    };
    let policy = Policy {
        managed: limits,
        unattended: Some(UnattendedPolicy::Allow { after_ms: 1 }),
        ..policy(&["allow beyond command make"])
    };
    let with = |approval: &str, sandbox: Sandbox| Settings {
        sandbox,
        ..settings(approval)
    };
    let objection = |settings: &Settings| policy.managed.objection(settings);
    let closed = Sandbox::default();
    assert_eq!(objection(&with("on-request", closed.clone())), None);
    assert_eq!(
        objection(&with("never", closed)).as_deref(),
        Some(
            "the managed policy does not allow the approval policy never; choose one of: untrusted, on-request"
        )
    );
    assert_eq!(
        objection(&with("on-request", Sandbox::FullAccess)).as_deref(),
        Some(
            "the managed policy does not allow the sandbox danger-full-access; choose one of: read-only, workspace-write"
        )
    );
    let online = with(
        "on-request",
        Sandbox::ReadOnly {
            roots: Vec::new(),
            network: true,
            reads: None,
        },
    );
    assert_eq!(
        objection(&online).as_deref(),
        Some("the managed policy keeps the network off; choose a sandbox without it")
    );
    let ruling = policy.judge(&act("run ls"), &online, &BTreeSet::new());
    assert_eq!(
        (ruling.verdict, ruling.rule.as_str()),
        (Verdict::Deny, "managed")
    );
    // Neither a rule of the user's nor an approval leads out of a sandbox that the operator
    // requires.
    let beyond = policy.judge(
        &act("run beyond make x"),
        &settings("on-request"),
        &BTreeSet::from(["digest of run beyond make x".to_owned()]),
    );
    assert_eq!(
        (beyond.verdict, beyond.rule.as_str()),
        (Verdict::Deny, "managed")
    );
    assert_eq!(policy.unattended(), UnattendedPolicy::Deny { after_ms: 5 });
}

#[test]
fn a_second_managed_file_only_tightens() {
    let some = |approvals: &[ApprovalKind], after_ms| ManagedLimits {
        approvals: Some(approvals.to_vec()),
        unattended: Some(UnattendedPolicy::Deny { after_ms }),
        ..ManagedLimits::default()
    };
    let first = some(&[ApprovalKind::Untrusted, ApprovalKind::OnRequest], 9);
    let second = ManagedLimits {
        network_off: true,
        ..some(&[ApprovalKind::OnRequest, ApprovalKind::Never], 3)
    };
    let expected = ManagedLimits {
        network_off: true,
        ..some(&[ApprovalKind::OnRequest], 3)
    };
    assert_eq!(first.clone().and(second.clone()), expected);
    assert_eq!(second.and(first.clone()), expected);
    assert_eq!(first.clone().and(ManagedLimits::default()), first);
    let allow = UnattendedPolicy::Allow { after_ms: 1 };
    assert_eq!(
        allow.stricter(UnattendedPolicy::Park),
        UnattendedPolicy::Park
    );
}

#[test]
fn at_the_deadline_only_acts_in_the_sandbox_are_approved() {
    let ask = |rules: &[&str], line: &str| judged(rules, "untrusted", line);
    let sandboxed = ask(&[], "run touch x");
    let beyond = ask(&[], "run beyond touch x");
    let by_rule = ask(&["ask command touch"], "run touch x");
    let allow = UnattendedPolicy::Allow { after_ms: 1 };
    assert_eq!(allow.at_deadline(&sandboxed), DeadlineAction::Accept);
    assert_eq!(allow.at_deadline(&beyond), DeadlineAction::Decline);
    assert_eq!(allow.at_deadline(&by_rule), DeadlineAction::Decline);
    let webhook = UnattendedPolicy::Webhook {
        after_ms: 1,
        url: "https://example.com".to_owned(),
        token_env: None,
    };
    for ruling in [&sandboxed, &beyond, &by_rule] {
        let deny = UnattendedPolicy::Deny { after_ms: 1 };
        assert_eq!(deny.at_deadline(ruling), DeadlineAction::Decline);
        assert_eq!(
            UnattendedPolicy::Park.at_deadline(ruling),
            DeadlineAction::Wait
        );
        assert_eq!(webhook.at_deadline(ruling), DeadlineAction::Decline);
    }
    assert_eq!(UnattendedPolicy::Park.after_ms(), None);
}

#[test]
fn an_answer_makes_a_rule_unless_it_would_allow_everything() {
    let text = include_str!("policy/amendments.txt");
    let (good, wide) = text.split_once("# Too wide.").expect("two parts");
    let lines = |text: &'static str| {
        text.lines()
            .filter(|it| !it.is_empty() && !it.starts_with('#'))
    };
    for line in lines(good) {
        let answer =
            json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words(line)}});
        let amendment = Amendment::of_answer(&answer).expect("a good one");
        assert_eq!(amendment.words(), words(line));
        assert!(!amendment.rule().beyond);
        assert_eq!(proposed(&script(line)), words(line), "{line}");
    }
    for line in lines(wide) {
        let error = Amendment::new(words(line))
            .expect_err("too wide")
            .to_string();
        assert!(error.contains("would allow everything"), "{line}: {error}");
        assert_eq!(proposed(&script(line)), Vec::<String>::new(), "{line}");
    }
    for bad in [
        vec![],
        vec![String::new()],
        vec!["a\nb".to_owned()],
        vec!["a".to_owned(); 65],
    ] {
        assert!(Amendment::new(bad).is_err());
    }
    for bad in [
        json!({}),
        json!({"execpolicy_amendment": "git push"}),
        json!({"execpolicy_amendment": [1]}),
    ] {
        assert!(Amendment::of_answer(&bad).is_err(), "{bad}");
    }
}

#[test]
fn the_proposed_rule_is_the_only_unknown_command() {
    let cases = [
        ("touch /home/user/x ; echo y", "touch /home/user/x"),
        ("cd a ; cargo test ; ls", "cargo test"),
        ("timeout 5 cargo test ; cargo test", "cargo test"),
        ("bash -lc ; cargo test", "cargo test"),
        ("touch a ; touch b", ""),
        ("ls", ""),
        ("~ touch a", ""),
    ];
    for (line, expected) in cases {
        assert_eq!(proposed(&script(line)).join(" "), expected, "{line}");
    }
}

#[test]
fn patterns_of_paths_hosts_and_names() {
    let paths = [
        ("/a/b", "/a/b", true),
        ("/a/b", "/a/b/c/d", true),
        ("/a/b", "/a/bc", false),
        ("/a/b", "/a", false),
        ("/a/*", "/a/b", true),
        ("/a/*.rs", "/a/b.rs", true),
        ("/a/*.rs", "/a/b/c.rs", false),
        ("/a/?.rs", "/a/b.rs", true),
        ("/a/?.rs", "/a/bb.rs", false),
        ("**/.env", "/.env", true),
        ("**/.env", "/a/b/.env", true),
        ("**/.env", "/a/.env.local", false),
        ("/a/**/x", "/a/x", true),
        ("/a/**/x", "/a/b/c/x", true),
        ("/a/**/x", "/b/x", false),
        ("/a/b", "/a/c/../b", true),
        ("/a/b", "/a/b/../c", false),
        ("/a//b/.", "/a/b", true),
        ("**", "/anything", true),
    ];
    for (pattern, path, expected) in paths {
        let fits = PathPattern::parse(pattern).expect("a good one").fits(path);
        assert_eq!(fits, expected, "{pattern} {path}");
    }
    for bad in ["a", "", "./a", "*", "../a", "/a/../b"] {
        assert!(PathPattern::parse(bad).is_err(), "{bad}");
    }
    let hosts = [
        ("example.com", "EXAMPLE.com.", true),
        ("example.com", "a.example.com", false),
        ("*.example.com", "a.b.example.com", true),
        ("*.example.com", "example.com", false),
        ("*.example.com", "badexample.com", false),
        ("*", "anything", true),
        ("10.0.0.1", "10.0.0.1", true),
        ("::1", "[::1]", true),
    ];
    for (pattern, host, expected) in hosts {
        let fits = HostPattern::parse(pattern).expect("a good one").fits(host);
        assert_eq!(fits, expected, "{pattern} {host}");
    }
    for bad in ["", "*.", "a*b", "http://a", "a/b", "a b"] {
        assert!(HostPattern::parse(bad).is_err(), "{bad}");
    }
}

const RULES: [&str; 7] = [
    "deny command rm",
    "deny command git push --force",
    "ask command git push",
    "ask command curl",
    "allow command cargo test",
    "allow beyond command make",
    "allow command git",
];

const COMMANDS: [&str; 11] = [
    "rm x",
    "git push",
    "git push -f",
    "git push --force",
    "git ?",
    "curl x",
    "cargo test",
    "make",
    "ls",
    "touch x",
    "?",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// An additional command, or a script that is not plain, is never judged more loosely, whatever
    /// the rules are.
    #[test]
    fn one_more_command_never_loosens(
        rules in prop::sample::subsequence(&RULES[..], 0..RULES.len()),
        commands in prop::collection::vec(prop::sample::select(&COMMANDS[..]), 1..8),
        more in prop::sample::select(&COMMANDS[..]),
        beyond in any::<bool>(),
        approval in prop::sample::select(&["untrusted", "on-request", "never", "granular", "no-rules", "no-sandbox"][..]),
    ) {
        let beyond = if beyond { "beyond " } else { "" };
        let few = commands.join(" ; ");
        let verdict = |line: &str| judged(&rules, approval, &format!("run {beyond}{line}")).verdict;
        let longer = [format!("{few} ; {more}"), format!("{more} ; {few}"), format!("~ {few}")];
        for longer in &longer {
            prop_assert!(verdict(longer) >= verdict(&few), "{}", longer);
        }
    }
}

/// The user can grant rights beyond the sandbox, except those that the operator forbids to request.
#[test]
fn rights_are_requested_where_the_user_may_grant_them() {
    let paths = |write: &[&str], network| Grant {
        write: write.iter().map(|it| (*it).to_owned()).collect(),
        network,
        session: false,
    };
    let (srv, network) = (paths(&["/srv"], false), paths(&[], true));
    let with_limits = |limits: ManagedLimits| Policy {
        managed: limits,
        ..Policy::default()
    };
    let sandboxed = with_limits(ManagedLimits {
        sandboxes: Some(vec![SandboxKind::ReadOnly, SandboxKind::WorkspaceWrite]),
        ..ManagedLimits::default()
    });
    let offline = with_limits(ManagedLimits {
        network_off: true,
        ..ManagedLimits::default()
    });
    let never_asking = with_limits(ManagedLimits {
        approvals: Some(vec![ApprovalKind::Never]),
        ..ManagedLimits::default()
    });
    for (policy, approval, grant, verdict) in [
        (Policy::default(), "on-request", &srv, "Ask by sandbox"),
        (Policy::default(), "untrusted", &network, "Ask by sandbox"),
        (Policy::default(), "never", &srv, "Deny by sandbox"),
        (sandboxed.clone(), "on-request", &srv, "Deny by managed"),
        (sandboxed, "on-request", &network, "Deny by managed"),
        (offline.clone(), "on-request", &network, "Deny by managed"),
        (offline, "on-request", &srv, "Ask by sandbox"),
        (never_asking, "on-request", &srv, "Deny by managed"),
        (
            policy(&["deny write /srv"]),
            "on-request",
            &srv,
            "Deny by write /srv",
        ),
        (
            policy(&["allow beyond write /srv"]),
            "on-request",
            &srv,
            "Ask by sandbox",
        ),
    ] {
        let ruling = policy.judge_rights(grant, &settings(approval), "d".to_owned());
        assert_eq!(format!("{:?} by {}", ruling.verdict, ruling.rule), verdict);
    }
    for (kinds, verdict) in [
        (
            serde_json::json!({"request_permissions": true}),
            Verdict::Ask,
        ),
        (serde_json::json!({"sandbox_approval": true}), Verdict::Deny),
    ] {
        let settings = Settings {
            approval: ApprovalPolicy::Granular(kinds),
            ..settings("on-request")
        };
        let ruling = Policy::default().judge_rights(&srv, &settings, "d".to_owned());
        assert_eq!(ruling.verdict, verdict);
    }
}

/// Granted rights never exceed the operator's present limits, and do not block a thread.
#[test]
fn granted_rights_stay_within_the_present_limits() {
    let rights = Grant {
        write: vec!["/srv".to_owned()],
        network: true,
        session: true,
    };
    let only = |kinds: &[SandboxKind]| ManagedLimits {
        sandboxes: Some(kinds.to_vec()),
        ..ManagedLimits::default()
    };
    let off = ManagedLimits {
        network_off: true,
        ..ManagedLimits::default()
    };
    let read_only = Sandbox::ReadOnly {
        roots: Vec::new(),
        network: false,
        reads: None,
    };
    let settings = Settings {
        sandbox: read_only,
        ..settings("on-request")
    };
    for (limits, roots, network) in [
        (ManagedLimits::default(), &["/srv"][..], true),
        (off, &["/srv"], false),
        (only(&[SandboxKind::ReadOnly]), &[], false),
        (
            only(&[SandboxKind::ReadOnly, SandboxKind::FullAccess]),
            &["/srv"],
            true,
        ),
    ] {
        let widened = limits.widened(&settings, &rights);
        let expected = Sandbox::ReadOnly {
            roots: roots.iter().map(|it| (*it).to_owned()).collect(),
            network,
            reads: None,
        };
        assert_eq!(widened.sandbox, expected, "{limits:?}");
        assert_eq!(widened.without_grants(), settings, "{limits:?}");
        assert_eq!(limits.objection(&widened), None, "{limits:?}");
    }
}
