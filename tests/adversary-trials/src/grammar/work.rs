//! Ordinary work, which must go on as if nobody attacked.

use serde_json::{Value, json};

use super::CallContext;
use super::attacks::patch_call;
use super::shell::run_plainly;
use crate::call::{Class, ModelCallSpec, token};
use crate::host::EDITED;

type Make = fn(&mut CallContext<'_>, &'static str) -> ModelCallSpec;

/// Work of each kind, and how it is asked for.
pub const KINDS: &[(&str, Make)] = &[
    ("list", |dice, kind| {
        line(dice, kind, "ls -la src | head -5")
    }),
    ("read", |dice, kind| line(dice, kind, "cat src/letters.txt")),
    ("find", |dice, kind| {
        line(dice, kind, "grep -n beta src/letters.txt")
    }),
    ("make", |dice, kind| {
        let file = format!("src/made-{}.txt", dice.number);
        line(
            dice,
            kind,
            &format!("echo {file} > {file}; cat {file}; rm {file}"),
        )
    }),
    ("build", |dice, kind| {
        let folder = format!("build/{}", dice.number);
        line(
            dice,
            kind,
            &format!("mkdir -p {folder} && cp src/letters.txt {folder}/ && rm -r {folder}"),
        )
    }),
    ("script", |dice, kind| {
        line(dice, kind, "python3 -c 'print(6 * 7)'")
    }),
    ("git", |dice, kind| {
        line(dice, kind, "git status --short | wc -l")
    }),
    ("temporary", |dice, kind| {
        line(dice, kind, "f=$(mktemp) && echo x > $f && rm $f")
    }),
    ("pipeline", |dice, kind| {
        line(dice, kind, "seq 100 | sort -rn | tail -1")
    }),
    ("type", types),
    ("plan", plan),
    ("patch", patches),
    ("update", updates),
    ("look", looks),
    ("read-file", |dice, kind| {
        file_tool(
            dice,
            kind,
            "read_file",
            &json!({"path": "src/letters.txt"}),
            "gamma",
        )
    }),
    ("list-files", |dice, kind| {
        file_tool(
            dice,
            kind,
            "list_files",
            &json!({"path": "src"}),
            "letters.txt",
        )
    }),
    ("search-files", |dice, kind| {
        file_tool(
            dice,
            kind,
            "search_files",
            &json!({"pattern": "ga+mma"}),
            "letters.txt",
        )
    }),
    ("write-file", |dice, kind| {
        let path = format!("src/written-{}.txt", dice.number);
        let content = format!("{}\n", token(dice.number));
        let file = dice.layout.workspace().join(&path);
        file_tool(
            dice,
            kind,
            "write_file",
            &json!({"path": path, "content": content}),
            "",
        )
        .changes(file)
    }),
    ("edit-file", |dice, kind| {
        let new = format!("top\n{}", token(dice.number));
        file_tool(
            dice,
            kind,
            "edit_file",
            &json!({"path": edited(dice), "old": "top", "new": new}),
            "",
        )
        .changes(dice.layout.workspace().join(edited(dice)))
    }),
    ("granted-command", granted_command),
    ("granted-patch", granted_patch),
];

pub fn call(dice: &mut CallContext<'_>) -> ModelCallSpec {
    let (kind, make) = dice.rng.pick(KINDS);
    make(dice, kind)
}

/// What is printed last says that all went well.
fn line(dice: &mut CallContext<'_>, kind: &'static str, line: &str) -> ModelCallSpec {
    let number = dice.number;
    let line = format!("{{ {line}; }} && printf 'well-%s.\\n' {number}");
    run_plainly(dice, kind, Class::Work, &line).shows(well(number))
}

fn well(number: usize) -> String {
    format!("well-{number}.")
}

fn types(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let number = dice.number;
    let arguments = json!({
        "cmd": format!("read line; printf 'well-%s.\\n' {number}; : {}", token(number)),
        "tty": true,
        "yield_time_ms": 250,
    });
    let mut call = ModelCallSpec::function(number, kind, Class::Work, "exec_command", &arguments)
        .shows(well(number));
    call.typed = Some("go\n".to_owned());
    call
}

fn plan(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let plan = json!([{"step": "look", "status": "completed"}, {"step": token(dice.number), "status": "in_progress"}]);
    ModelCallSpec::function(
        dice.number,
        kind,
        Class::Work,
        "update_plan",
        &json!({"plan": plan}),
    )
    .shows("")
}

fn patches(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let text = format!(
        "*** Begin Patch\n*** Add File: src/patched-{0}.txt\n+{1}\n*** End Patch\n",
        dice.number,
        token(dice.number)
    );
    let file = format!("src/patched-{}.txt", dice.number);
    let file = dice.layout.workspace().join(file);
    patch_call(dice, kind, Class::Work, text).changes(file)
}

fn updates(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let text = format!(
        "*** Begin Patch\n*** Update File: {}\n@@\n top\n+{}\n*** End Patch\n",
        edited(dice),
        token(dice.number)
    );
    let file = dice.layout.workspace().join(edited(dice));
    patch_call(dice, kind, Class::Work, text).changes(file)
}

/// A file that no other call of the same answer edits: a change that someone said yes to is refused once another
/// one came before it.
fn edited(dice: &CallContext<'_>) -> String {
    format!("src/edited/{}.txt", dice.number % EDITED)
}

fn looks(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    ModelCallSpec::function(
        dice.number,
        kind,
        Class::Work,
        "view_image",
        &json!({"path": "picture.png"}),
    )
    .shows("data:image/png")
}

fn file_tool(
    dice: &mut CallContext<'_>,
    kind: &'static str,
    name: &str,
    arguments: &Value,
    shows: &str,
) -> ModelCallSpec {
    ModelCallSpec::function(dice.number, kind, Class::Work, name, arguments).shows(shows)
}

/// Beyond the fence, with a yes.
fn granted_command(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let left = dice.layout.granted().join(token(dice.number));
    let arguments = json!({
        "cmd": format!("touch {}", left.display()),
        "sandbox_permissions": "require_escalated",
        "justification": "the file belongs there",
    });
    let mut call =
        ModelCallSpec::function(dice.number, kind, Class::Work, "exec_command", &arguments);
    call.leaves = Some(left);
    call
}

fn granted_patch(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let left = dice.layout.granted().join(token(dice.number));
    let text = format!(
        "*** Begin Patch\n*** Add File: {}\n+{}\n*** End Patch\n",
        left.display(),
        token(dice.number)
    );
    let mut call = patch_call(dice, kind, Class::Work, text);
    call.leaves = Some(left);
    call
}
