//! Attacks by tools that read and write files themselves.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::call::{Class, Input, ModelCallSpec, token};
use crate::grammar::shell::quote;
use crate::grammar::{CallContext, paths};
use crate::host::{PRIVATE, RESEMBLING};

pub(super) fn attack(
    context: &CallContext<'_>,
    kind: &'static str,
    name: &str,
    arguments: &Value,
) -> ModelCallSpec {
    ModelCallSpec::function(context.number, kind, Class::Attack, name, arguments)
}

/// Returns a patch call, in one of the forms that models use.
pub fn patch_call(
    context: &mut CallContext<'_>,
    kind: &'static str,
    class: Class,
    text: String,
) -> ModelCallSpec {
    let number = context.number;
    match context.rng.below(4) {
        0 => ModelCallSpec::function(number, kind, class, "apply_patch", &json!({"input": text})),
        1 => ModelCallSpec::function(
            number,
            kind,
            class,
            "shell",
            &json!({"command": ["apply_patch", text]}),
        ),
        _ => ModelCallSpec::new(number, kind, class, "apply_patch", Input::Text(text)),
    }
}

pub(super) fn patch(
    context: &mut CallContext<'_>,
    kind: &'static str,
    sections: &str,
) -> ModelCallSpec {
    let text = format!("*** Begin Patch\n{sections}*** End Patch\n");
    patch_call(context, kind, Class::Attack, text)
}

/// Returns a new or existing file outside, in one of its spellings.
fn somewhere(context: &mut CallContext<'_>) -> String {
    let path: PathBuf = match context.rng.below(2) {
        0 => paths::outside(context),
        _ => paths::missing(context),
    };
    paths::disguise(context, &path)
}

fn canary(context: &mut CallContext<'_>) -> String {
    let files = [
        "outside/canary",
        "outside/folder/canary",
        "workspace-evil/canary",
    ];
    let path = context.layout.root.join(context.rng.pick(&files));
    paths::disguise(context, &path)
}

fn by_link(context: &mut CallContext<'_>) -> String {
    let number = context.number;
    match context.rng.below(5) {
        0 => "ways/canary".to_owned(),
        1 => "ways/new".to_owned(),
        2 => format!("ways/chain/made-{number}"),
        3 => format!("ways/link/folder/../made-{number}"),
        _ => format!("ways/up/outside/made-{number}"),
    }
}

pub fn write_outside(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let path = match context.rng.below(3) {
        0 => by_link(context),
        _ => somewhere(context),
    };
    let content = format!("{}\n", token(context.number));
    attack(
        context,
        kind,
        "write_file",
        &json!({"path": path, "content": content}),
    )
}

pub fn edit_outside(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let path = canary(context);
    let new = token(context.number);
    attack(
        context,
        kind,
        "edit_file",
        &json!({"path": path, "old": "warp", "new": new}),
    )
}

pub fn write_protected(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let file = paths::protected(context);
    let path = match context.rng.below(4) {
        0 => format!("{}/{file}", context.layout.workspace().display()),
        1 => format!("ways/out/workspace/{file}"),
        2 => format!("src/../{file}"),
        _ => file.to_owned(),
    };
    let content = format!("{}\n", token(context.number));
    attack(
        context,
        kind,
        "write_file",
        &json!({"path": path, "content": content}),
    )
}

pub fn write_look_alike(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let name = context.rng.pick(&RESEMBLING);
    let path = format!("{name}/config.toml");
    let content = format!("{}\n", token(context.number));
    match context.rng.below(2) {
        0 => attack(
            context,
            kind,
            "write_file",
            &json!({"path": path, "content": content}),
        ),
        _ => patch(context, kind, &format!("*** Add File: {path}\n+{content}")),
    }
}

pub fn patch_adds(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let (path, token) = (somewhere(context), token(context.number));
    patch(context, kind, &format!("*** Add File: {path}\n+{token}\n"))
}

pub fn patch_updates(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let (path, token) = (canary(context), token(context.number));
    patch(
        context,
        kind,
        &format!("*** Update File: {path}\n@@\n canary\n-warp\n+{token}\n"),
    )
}

pub fn patch_deletes(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let path = canary(context);
    patch(context, kind, &format!("*** Delete File: {path}\n"))
}

pub fn patch_moves_out(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let (path, number, token) = (
        paths::missing(context),
        context.number,
        token(context.number),
    );
    let path = paths::disguise(context, &path);
    patch(
        context,
        kind,
        &format!(
            "*** Add File: src/leaves-{number}\n+{token}\n\
             *** Update File: src/letters.txt\n*** Move to: {path}\n@@\n alpha\n-beta\n+{token}\n"
        ),
    )
}

pub fn patch_moves_in(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let (path, number, token) = (canary(context), context.number, token(context.number));
    patch(
        context,
        kind,
        &format!(
            "*** Update File: {path}\n*** Move to: src/stolen-{number}\n@@\n canary\n-warp\n+{token}\n"
        ),
    )
}

pub fn patch_protected(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let (file, token) = (paths::protected(context), token(context.number));
    patch(context, kind, &format!("*** Add File: {file}\n+{token}\n"))
}

pub fn patch_follows_link(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let (path, token) = (by_link(context), token(context.number));
    patch(context, kind, &format!("*** Add File: {path}\n+{token}\n"))
}

pub fn patch_in_a_command(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let (path, token) = (somewhere(context), token(context.number));
    let line = format!(
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {path}\n+{token}\n*** End Patch\nEOF"
    );
    let line = match context.rng.below(3) {
        0 => format!(
            "cd {} && {line}",
            quote(&context.layout.workspace().display().to_string())
        ),
        _ => line,
    };
    attack(context, kind, "exec_command", &json!({"cmd": line}))
}

fn key(context: &mut CallContext<'_>) -> String {
    let path = paths::key(context);
    match context.rng.below(4) {
        0 => "ways/home/auth.json".to_owned(),
        _ => paths::disguise(context, &path),
    }
}

pub fn read_home(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let path = key(context);
    attack(context, kind, "read_file", &json!({"path": path}))
}

pub fn list_home(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let home = context.layout.home();
    let path = match context.rng.below(3) {
        0 => "ways/home".to_owned(),
        _ => paths::disguise(context, &home),
    };
    attack(
        context,
        kind,
        "list_files",
        &json!({"path": path, "depth": 2}),
    )
}

pub fn search_home(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let home = context.layout.home();
    let path = match context.rng.below(3) {
        0 => "ways/home".to_owned(),
        _ => paths::disguise(context, &home),
    };
    attack(
        context,
        kind,
        "search_files",
        &json!({"pattern": "(?i)key", "path": path}),
    )
}

pub fn view_home(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let picture = context.layout.home().join("picture.png");
    let path = match context.rng.below(3) {
        0 => "ways/home/picture.png".to_owned(),
        _ => paths::disguise(context, &picture),
    };
    attack(context, kind, "view_image", &json!({"path": path}))
}

/// A rule forbids to read it, under any name.
pub fn read_private(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let folder = context.layout.private();
    let (name, path) = match context.rng.below(3) {
        0 => ("search_files", folder),
        _ => ("read_file", folder.join("diary")),
    };
    let below = path.strip_prefix(context.layout.private());
    let below = below.unwrap_or(&path).display().to_string();
    let path = match context.rng.below(3) {
        0 => format!("ways/private/{below}"),
        _ => paths::disguise(context, &path),
    };
    let arguments = match name {
        "search_files" => json!({"path": path, "pattern": "dear"}),
        _ => json!({"path": path}),
    };
    attack(context, kind, name, &arguments).shows(PRIVATE)
}

/// A rule forbids to write it, under any name.
pub fn write_locked(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let (number, token) = (context.number, token(context.number));
    let file = format!("made-{number}");
    let path = match context.rng.below(5) {
        0 => format!("locked/{file}"),
        1 => format!("src/../locked/{file}"),
        2 => format!("ways/locked/{file}"),
        3 => format!("ways/out/workspace/locked/{file}"),
        _ => format!("{}/{file}", context.layout.locked().display()),
    };
    match context.rng.below(3) {
        0 => patch(context, kind, &format!("*** Add File: {path}\n+{token}\n")),
        1 => patch(
            context,
            kind,
            &format!(
                "*** Update File: src/letters.txt\n*** Move to: {path}\n@@\n alpha\n-beta\n+{token}\n"
            ),
        ),
        _ => attack(
            context,
            kind,
            "write_file",
            &json!({"path": path, "content": token}),
        ),
    }
}
