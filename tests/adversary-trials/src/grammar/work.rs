//! Ordinary work, which must succeed as if there were no attacks.

use serde_json::{Value, json};

use super::CallContext;
use super::attacks::patch_call;
use super::shell::run_plainly;
use crate::call::{Class, ModelCallSpec, token};
use crate::host::EDITED;

type Make = fn(&mut CallContext<'_>, &'static str) -> ModelCallSpec;

/// Kinds of work, with their generators.
pub const KINDS: &[(&str, Make)] = &[
    ("list", |context, kind| {
        line(context, kind, "ls -la src | head -5")
    }),
    ("read", |context, kind| {
        line(context, kind, "cat src/letters.txt")
    }),
    ("find", |context, kind| {
        line(context, kind, "grep -n beta src/letters.txt")
    }),
    ("make", |context, kind| {
        let file = format!("src/made-{}.txt", context.number);
        line(
            context,
            kind,
            &format!("echo {file} > {file}; cat {file}; rm {file}"),
        )
    }),
    ("build", |context, kind| {
        let folder = format!("build/{}", context.number);
        line(
            context,
            kind,
            &format!("mkdir -p {folder} && cp src/letters.txt {folder}/ && rm -r {folder}"),
        )
    }),
    ("script", |context, kind| {
        line(context, kind, "python3 -c 'print(6 * 7)'")
    }),
    ("git", |context, kind| {
        line(context, kind, "git status --short | wc -l")
    }),
    ("temporary", |context, kind| {
        line(context, kind, "f=$(mktemp) && echo x > $f && rm $f")
    }),
    ("pipeline", |context, kind| {
        line(context, kind, "seq 100 | sort -rn | tail -1")
    }),
    ("type", types),
    ("plan", plan),
    ("patch", patches),
    ("update", updates),
    ("look", looks),
    ("read-file", |context, kind| {
        file_tool(
            context,
            kind,
            "read_file",
            &json!({"path": "src/letters.txt"}),
            "gamma",
        )
    }),
    ("list-files", |context, kind| {
        file_tool(
            context,
            kind,
            "list_files",
            &json!({"path": "src"}),
            "letters.txt",
        )
    }),
    ("search-files", |context, kind| {
        file_tool(
            context,
            kind,
            "search_files",
            &json!({"pattern": "ga+mma"}),
            "letters.txt",
        )
    }),
    ("write-file", |context, kind| {
        let path = format!("src/written-{}.txt", context.number);
        let content = format!("{}\n", token(context.number));
        let file = context.layout.workspace().join(&path);
        file_tool(
            context,
            kind,
            "write_file",
            &json!({"path": path, "content": content}),
            "",
        )
        .changes(file)
    }),
    ("edit-file", |context, kind| {
        let new = format!("top\n{}", token(context.number));
        file_tool(
            context,
            kind,
            "edit_file",
            &json!({"path": edited(context), "old": "top", "new": new}),
            "",
        )
        .changes(context.layout.workspace().join(edited(context)))
    }),
    ("granted-command", granted_command),
    ("granted-patch", granted_patch),
];

pub fn call(context: &mut CallContext<'_>) -> ModelCallSpec {
    let (kind, make) = context.rng.pick(KINDS);
    make(context, kind)
}

/// Returns a call that runs a line; the last output tells that it succeeded.
fn line(context: &mut CallContext<'_>, kind: &'static str, line: &str) -> ModelCallSpec {
    let number = context.number;
    let line = format!("{{ {line}; }} && printf 'well-%s.\\n' {number}");
    run_plainly(context, kind, Class::Work, &line).shows(success_text(number))
}

fn success_text(number: usize) -> String {
    format!("well-{number}.")
}

fn types(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let number = context.number;
    let arguments = json!({
        "cmd": format!("read line; printf 'well-%s.\\n' {number}; : {}", token(number)),
        "tty": true,
        "yield_time_ms": 250,
    });
    let mut call = ModelCallSpec::function(number, kind, Class::Work, "exec_command", &arguments)
        .shows(success_text(number));
    call.typed = Some("go\n".to_owned());
    call
}

fn plan(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let plan = json!([{"step": "look", "status": "completed"}, {"step": token(context.number), "status": "in_progress"}]);
    ModelCallSpec::function(
        context.number,
        kind,
        Class::Work,
        "update_plan",
        &json!({"plan": plan}),
    )
    .shows("")
}

fn patches(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let text = format!(
        "*** Begin Patch\n*** Add File: src/patched-{0}.txt\n+{1}\n*** End Patch\n",
        context.number,
        token(context.number)
    );
    let file = format!("src/patched-{}.txt", context.number);
    let file = context.layout.workspace().join(file);
    patch_call(context, kind, Class::Work, text).changes(file)
}

fn updates(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let text = format!(
        "*** Begin Patch\n*** Update File: {}\n@@\n top\n+{}\n*** End Patch\n",
        edited(context),
        token(context.number)
    );
    let file = context.layout.workspace().join(edited(context));
    patch_call(context, kind, Class::Work, text).changes(file)
}

/// Returns a file that no other call of the same answer edits: an approved change is refused if
/// another change came before it.
fn edited(context: &CallContext<'_>) -> String {
    format!("src/edited/{}.txt", context.number % EDITED)
}

fn looks(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    ModelCallSpec::function(
        context.number,
        kind,
        Class::Work,
        "view_image",
        &json!({"path": "picture.png"}),
    )
    .shows("data:image/png")
}

fn file_tool(
    context: &mut CallContext<'_>,
    kind: &'static str,
    name: &str,
    arguments: &Value,
    shows: &str,
) -> ModelCallSpec {
    ModelCallSpec::function(context.number, kind, Class::Work, name, arguments).shows(shows)
}

/// A command outside the sandbox, with an approval.
fn granted_command(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let marker = context.layout.granted().join(token(context.number));
    let arguments = json!({
        "cmd": format!("touch {}", marker.display()),
        "sandbox_permissions": "require_escalated",
        "justification": "the file belongs there",
    });
    let mut call = ModelCallSpec::function(
        context.number,
        kind,
        Class::Work,
        "exec_command",
        &arguments,
    );
    call.marker = Some(marker);
    call
}

fn granted_patch(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let marker = context.layout.granted().join(token(context.number));
    let text = format!(
        "*** Begin Patch\n*** Add File: {}\n+{}\n*** End Patch\n",
        marker.display(),
        token(context.number)
    );
    let mut call = patch_call(context, kind, Class::Work, text);
    call.marker = Some(marker);
    call
}
