use raddle_core::policy::{UnattendedPolicy, Verdict};

use super::*;

/// A folder with rule files.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    fn open(&self) -> Result<RuleStore> {
        let extra = self.path("too.toml");
        let extra = extra.exists().then_some(extra);
        RuleStore::of(&self.path("managed.toml"), extra, &self.path("rules.toml"))
    }
}

fn amendment(line: &str) -> Amendment {
    let words = line.split(' ').map(str::to_owned).collect();
    Amendment::new(words).expect("a rule")
}

#[test]
fn the_example_of_the_docs_is_read_without_warnings() {
    let text = include_str!("../../../../docs/policy.md");
    let blocks: Vec<&str> = text.split("```toml\n").skip(1).collect();
    let blocks: Vec<&str> = blocks
        .iter()
        .filter_map(|it| it.split("```").next())
        .collect();
    let [_review, _confined, _variables, user, managed, webhook] = blocks[..] else {
        panic!(
            "the page has an example of each file, two of profiles, one of variables and one of a webhook"
        );
    };
    let home = Some(Path::new("/home/user"));
    let user = parse(user, Layer::User, home).expect("the user's file");
    assert_eq!(user.warnings, Vec::<String>::new());
    assert!(user.policy.rules.len() >= 5);
    let managed = parse(managed, Layer::Managed, None).expect("the operator's file");
    assert_eq!(managed.warnings, Vec::<String>::new());
    assert!(managed.policy.managed.network_off);
    let webhook = parse(webhook, Layer::User, home).expect("a user's file");
    assert_eq!(webhook.warnings, Vec::<String>::new());
    let unattended = webhook.policy.unattended;
    assert!(matches!(unattended, Some(UnattendedPolicy::Webhook { .. })));
}

#[test]
fn errors_of_a_file_are_reported() {
    let cases = [
        (
            "rule = 3",
            "`rule` is no list; begin each rule with [[rule]]",
        ),
        ("rule = [3]", "rule 1 is no table; begin it with [[rule]]"),
        (
            "[[rule]]\ncommand = [\"a\"]",
            "rule 1: it has no verdict; write verdict = \"allow\", \"ask\" or \"deny\"",
        ),
        (
            "[[rule]]\nverdict = \"deny\"",
            "rule 1: it has no subject, or several; write one of command, write, read, host and tool",
        ),
        (
            "[[rule]]\nverdict = \"deny\"\ntool = \"a\"\nhost = \"b\"",
            "rule 1: it has no subject, or several; write one of command, write, read, host and tool",
        ),
        (
            "[[rule]]\nverdict = \"deny\"\ncommand = \"git push\"",
            "rule 1: `command` is a list of words, like [\"git\", \"push\"]",
        ),
        (
            "[[rule]]\nverdict = \"deny\"\ncommand = []",
            "rule 1: `command` is a list of words, like [\"git\", \"push\"]",
        ),
        (
            "[[rule]]\nverdict = \"deny\"\nwrite = \"a\"",
            "rule 1: a path in a rule begins with `/` or `**/`, and `a` does not",
        ),
        (
            "[[rule]]\nverdict = \"ask\"\ntool = \"a\"\nbeyond = true",
            "rule 1: only a rule that allows can set `beyond`; remove it",
        ),
        (
            "unattended = \"maybe\"",
            "`unattended` is none of \"deny\", \"allow\", \"park\" and \"webhook\"",
        ),
        (
            "unattended_after_seconds = -1",
            "`unattended_after_seconds` is out of range; write a number of seconds",
        ),
        (
            "unattended = \"webhook\"",
            "`unattended = \"webhook\"` needs `unattended_webhook`, an address",
        ),
        (
            "allowed_sandbox_modes = [\"open\"]",
            "`allowed_sandbox_modes` is a list of some of: read-only, workspace-write, danger-full-access, external",
        ),
        ("network = 1", "`network` is neither true nor false"),
        (
            "[[rule]]\nverdict = \"deny\"\nread = \"~/.ssh\"",
            "rule 1: `~` is another folder for each user; write \"/home/*/…\" or \"**/…\" in a managed file",
        ),
    ];
    for (text, expected) in cases {
        let error = parse(text, Layer::Managed, None).expect_err(text);
        assert_eq!(format!("{error:#}"), expected, "{text}");
    }
}

#[test]
fn a_webhook_is_https_or_on_this_machine() {
    let cases = [
        ("https://example.com/x", true),
        ("http://127.0.0.1:8080/x", true),
        ("http://localhost", true),
        ("http://[::1]:80/x", true),
        ("http://example.com", false),
        ("http://127.0.0.1@example.com", false),
        ("http://localhost.example.com", false),
        ("https://a@example.com", false),
        ("https://", false),
        ("ftp://localhost", false),
    ];
    for (url, expected) in cases {
        let text = format!("unattended = \"webhook\"\nunattended_webhook = \"{url}\"");
        let parsed = parse(&text, Layer::User, None);
        assert_eq!(parsed.is_ok(), expected, "{url}");
    }
    let text = "unattended = \"webhook\"\nunattended_after_seconds = 7\n\
                unattended_webhook = \"https://example.com\"\nunattended_webhook_token_env = \"TOKEN\"";
    let parsed = parse(text, Layer::User, None).expect("a file");
    assert_eq!(parsed.warnings, [""; 0]);
    let expected = UnattendedPolicy::Webhook {
        after_ms: 7_000,
        url: "https://example.com".to_owned(),
        token_env: Some("TOKEN".to_owned()),
    };
    assert_eq!(parsed.policy.unattended, Some(expected));
}

#[test]
fn unknown_keys_are_reported() {
    let text =
        "rules = 1\nnetwork = false\n[[rule]]\ntool = \"a\"\nverdict = \"deny\"\nbecause = true\n";
    let mut parsed = parse(text, Layer::User, None).expect("a file");
    parsed.warnings.sort();
    assert_eq!(
        parsed.warnings,
        [
            "`because` of rule 1 is not a key of a rule and is ignored",
            "`network` is valid only in a managed file and is ignored",
            "`rules` is not a key of rules and is ignored",
        ]
    );
    assert!(!parsed.policy.managed.network_off);
}

#[test]
fn files_add_up_and_the_operator_goes_first() {
    let folder = Folder::new();
    folder.put(
        "managed.toml",
        "unattended = \"deny\"\nunattended_after_seconds = 9\nnetwork = false\n",
    );
    folder.put(
        "too.toml",
        "unattended = \"allow\"\n[[rule]]\ncommand = [\"rm\"]\nverdict = \"deny\"\n",
    );
    folder.put(
        "rules.toml",
        "unattended = \"allow\"\n[[rule]]\ncommand = [\"rm\"]\nverdict = \"allow\"\n",
    );
    let policy = folder.open().expect("rules").policy();
    assert_eq!(
        policy.unattended(),
        UnattendedPolicy::Deny { after_ms: 9_000 }
    );
    assert!(policy.managed.network_off);
    assert_eq!(policy.rules.len(), 2);
}

/// A file that any user can name and write restricts like the operator's, and allows like the
/// user's.
#[test]
fn a_named_file_allows_only_if_it_is_the_operators() {
    let folder = Folder::new();
    folder.put(
        "too.toml",
        "allowed_sandbox_modes = [\"read-only\"]\n\
         [[rule]]\ncommand = [\"a\"]\nverdict = \"allow\"\nbeyond = true\n\
         [[rule]]\ncommand = [\"b\"]\nverdict = \"deny\"\n",
    );
    let rules = folder.open().expect("rules");
    let layers: Vec<Layer> = rules.policy().rules.iter().map(|it| it.layer).collect();
    assert_eq!(layers, [Layer::User, Layer::Managed]);
    assert!(rules.policy().managed.sandboxes.is_some());
    let warnings = rules.warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("count as the user's"), "{warnings:?}");
    assert!(!raddle_sandbox::is_owned_by_root(&folder.path("too.toml")));
    assert!(!raddle_sandbox::is_owned_by_root(&folder.path("nowhere")));
    assert!(raddle_sandbox::is_owned_by_root(Path::new("/etc/passwd")));
}

#[test]
fn unreadable_rules_stop_the_start_but_not_a_running_server() {
    let folder = Folder::new();
    folder.put("managed.toml", "network = ");
    let error = folder.open().expect_err("a broken file");
    assert!(format!("{error:#}").contains("managed.toml"), "{error:#}");
    let missing = RuleStore::of(
        &folder.path("a"),
        Some(folder.path("gone")),
        &folder.path("b"),
    );
    let error = missing.expect_err("a file that was named must be there");
    assert!(
        format!("{error:#}").starts_with("cannot read "),
        "{error:#}"
    );

    folder.put("managed.toml", "network = false");
    let rules = folder.open().expect("rules");
    folder.put("managed.toml", "network = ");
    assert!(
        rules.policy().managed.network_off,
        "what was read stays in force"
    );
    folder.put("managed.toml", "network = true");
    assert!(
        !rules.policy().managed.network_off,
        "what is mended is read"
    );
}

#[tokio::test]
async fn a_rule_is_added_and_the_rest_stays_as_it_is() {
    let folder = Folder::new();
    let before = "# mine\nunattended = \"park\" # for now\n\n[[rule]]\n# never\ncommand = [ \"rm\" ]\nverdict = \"deny\"\n";
    folder.put("rules.toml", before);
    let rules = folder.open().expect("rules");
    rules.amend(amendment("git push")).await.expect("written");
    rules
        .amend(amendment("git push"))
        .await
        .expect("already there");
    let after = std::fs::read_to_string(folder.path("rules.toml")).expect("the file");
    let added = "\n[[rule]]\ncommand = [\"git\", \"push\"]\nverdict = \"allow\"\n";
    assert_eq!(after, format!("{before}{added}"));
    let verdicts: Vec<Verdict> = rules.policy().rules.iter().map(|it| it.verdict).collect();
    assert_eq!(verdicts, [Verdict::Deny, Verdict::Allow]);

    let folder = Folder::new();
    let rules = folder.open().expect("no file");
    rules.amend(amendment("a")).await.expect("a new file");
    assert_eq!(rules.policy().rules.len(), 1);
    folder.put(
        "rules.toml",
        "rule = [{ command = [\"x\"], verdict = \"ask\" }]\n",
    );
    rules
        .amend(amendment("a"))
        .await
        .expect("written in a line");
    assert_eq!(rules.policy().rules.len(), 2);
    folder.put("rules.toml", "broken");
    let error = rules.amend(amendment("b")).await.expect_err("broken");
    assert!(matches!(error, AmendError::Unreadable(_)), "{error}");
    let text = std::fs::read_to_string(folder.path("rules.toml")).expect("the file");
    assert_eq!(text, "broken", "what cannot be read is not touched");
}

/// Concurrent writers, as in several processes: each takes the lock with its own file handle.
#[test]
fn writers_lose_nothing_of_each_other() {
    let folder = Folder::new();
    let path = folder.path("rules.toml");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for rule in 0..8 {
                    let amendment = amendment(&format!("tool{writer} sub{rule}"));
                    write::add(path, &amendment).expect("written");
                }
            });
        }
    });
    assert_eq!(folder.open().expect("rules").policy().rules.len(), 32);
}

/// A replaced file is detected by its inode.
#[test]
fn a_replaced_file_of_equal_time_and_length_is_read() {
    let folder = Folder::new();
    let old = SystemTime::now() - 10 * TIMESTAMP_GRANULARITY;
    let put = |name: &str, verdict: &str| {
        folder.put(
            name,
            &format!("[[rule]]\nverdict = {verdict}\ncommand = [\"make\"]\n"),
        );
        let file = std::fs::File::options().write(true).open(folder.path(name));
        file.and_then(|it| it.set_modified(old)).expect("a time");
    };
    put("rules.toml", "\"allow\"");
    let rules = folder.open().expect("rules");
    let verdict = || rules.policy().rules.first().map(|it| it.verdict);
    assert_eq!(verdict(), Some(Verdict::Allow));
    // Of the same length and age.
    put("other.toml", "\"deny\" ");
    std::fs::rename(folder.path("other.toml"), folder.path("rules.toml")).expect("moved");
    assert_eq!(verdict(), Some(Verdict::Deny));
}
