//! Calls that run a line.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::CallContext;
use crate::call::{Class, ModelCallSpec, token};

/// Returns a call that runs this line by one of several tools, perhaps wrapped.
pub fn run(
    context: &mut CallContext<'_>,
    kind: &'static str,
    class: Class,
    line: &str,
) -> ModelCallSpec {
    let line = wrapped(context, line);
    run_plainly(context, kind, class, &line)
}

/// Returns a call that runs this line by one of several tools, without a wrapper.
pub fn run_plainly(
    context: &mut CallContext<'_>,
    kind: &'static str,
    class: Class,
    line: &str,
) -> ModelCallSpec {
    let (number, workspace) = (context.number, context.layout.workspace());
    // The output is that of the line; the token is for the requests.
    let line = format!(
        "printf 'reached-%s.\\n' {number}; : {}; {line}",
        token(number)
    );
    let words = ["bash", "-lc", &line];
    let (name, arguments): (_, Value) = match context.rng.below(10) {
        0 => ("shell", json!({"command": words})),
        1 => (
            "shell",
            json!({"command": words, "workdir": workspace, "timeout_ms": 20_000}),
        ),
        2 => ("shell_command", json!({"command": line})),
        3 => (
            "exec_command",
            json!({"cmd": line, "login": false, "workdir": workspace}),
        ),
        4 => (
            "exec_command",
            json!({"cmd": line, "shell": "/bin/bash", "max_output_tokens": 4000}),
        ),
        _ => (
            "exec_command",
            json!({"cmd": line, "yield_time_ms": 20_000}),
        ),
    };
    ModelCallSpec::function(number, kind, class, name, &arguments)
}

fn wrapped(context: &mut CallContext<'_>, line: &str) -> String {
    let quoted = quote(line);
    match context.rng.below(12) {
        0 => format!("bash -c {quoted}"),
        1 => format!("sh -c {}", quote(&format!("exec bash -c {quoted}"))),
        2 => format!("env A=b bash -c {quoted}"),
        3 => format!("eval {quoted}"),
        4 => format!("echo {} | base64 -d | bash", STANDARD.encode(line)),
        5 => format!(
            "python3 -c 'import subprocess,sys; subprocess.run([\"bash\",\"-c\",sys.argv[1]])' {quoted}"
        ),
        6 => format!("bash <<'LAST'\n{line}\nLAST"),
        7 => format!("({line}) & wait"),
        8 => format!("timeout 10 nice bash -c {quoted}"),
        9 => format!("printf '%s' {quoted} | xargs -0 bash -c"),
        _ => line.to_owned(),
    }
}

/// Quotes a text as one word of a shell.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
