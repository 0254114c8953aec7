//! Wrong words, options and values on the command line.

use super::{WrongInput, wrong};

const HELP: &str = "For more information, try '--help'.";

pub(super) const TABLE: &[WrongInput] = &[
    wrong(
        "a misspelt command",
        &["doctr"],
        2,
        &[
            "unrecognized subcommand 'doctr'",
            "a similar subcommand exists: 'doctor'",
            HELP,
        ],
    ),
    wrong(
        "a misspelt option",
        &["doctor", "--onlinee"],
        2,
        &[
            "unexpected argument '--onlinee'",
            "a similar argument exists: '--online'",
            HELP,
        ],
    ),
    wrong(
        "a misspelt subcommand of config",
        &["config", "lst"],
        2,
        &[
            "unrecognized subcommand 'lst'",
            "a similar subcommand exists: 'list'",
            HELP,
        ],
    ),
    wrong(
        "a misspelt subcommand of thread",
        &["thread", "lst"],
        2,
        &[
            "unrecognized subcommand 'lst'",
            "a similar subcommand exists: 'list'",
            HELP,
        ],
    ),
    wrong(
        "a misspelt option of exec",
        &["exec", "--modell", "x", "hi"],
        2,
        &[
            "unexpected argument '--modell'",
            "a similar argument exists: '--model'",
            HELP,
        ],
    ),
    wrong(
        "a command without its subcommand",
        &["config"],
        2,
        &["Usage: raddle config <COMMAND>", "set     Write a value"],
    ),
    wrong(
        "a missing argument",
        &["config", "set", "model"],
        2,
        &[
            "required arguments were not provided",
            "<VALUE>",
            "Usage: raddle config set <KEY> <VALUE>",
        ],
    ),
    wrong(
        "an option without its value",
        &["exec", "--model"],
        2,
        &["a value is required for '--model <MODEL>'", HELP],
    ),
    wrong(
        "an empty model",
        &["exec", "-m", "", "hi"],
        2,
        &["a value is required for '--model <MODEL>'", HELP],
    ),
    wrong(
        "a provider without a model",
        &["exec", "-m", "mock/", "hi"],
        2,
        &[
            "--model mock/ names a provider and no model",
            "write PROVIDER/MODEL",
            "`raddle model list --provider NAME` lists",
        ],
    ),
    wrong(
        "an empty provider to log in with",
        &["login", ""],
        2,
        &["a value is required for '[PROVIDER]'", HELP],
    ),
    wrong(
        "an empty provider to ask for models",
        &["model", "list", "--provider", ""],
        2,
        &["a value is required for '--provider <NAME>'", HELP],
    ),
    wrong(
        "an empty variable of a key",
        &["init", "--model", "openai/m", "--key-env", ""],
        2,
        &["a value is required for '--key-env <VARIABLE>'", HELP],
    ),
    wrong(
        "an empty command line to judge",
        &["judge", " "],
        1,
        &["the command line is empty", "give one as one argument"],
    ),
    wrong(
        "an argument too many",
        &["doctor", "extra"],
        2,
        &[
            "unexpected argument 'extra'",
            "Usage: raddle doctor [OPTIONS]",
        ],
    ),
    wrong(
        "an unknown shell",
        &["completions", "tcsh"],
        2,
        &[
            "invalid value 'tcsh'",
            "[possible values: bash, elvish, fish, powershell, zsh]",
        ],
    ),
    wrong(
        "options that exclude each other",
        &["init", "--key-env", "A", "--key-file", "/k"],
        2,
        &[
            "'--key-env <VARIABLE>' cannot be used with '--key-file <PATH>'",
            HELP,
        ],
    ),
    wrong(
        "a limit of 0",
        &["thread", "list", "--limit", "0"],
        2,
        &[
            "invalid value '0' for '--limit <N>'",
            "0 is not in 1..=1000",
        ],
    ),
    wrong(
        "a timeout in words",
        &["daemon", "start", "--timeout", "soon"],
        2,
        &["invalid value 'soon' for '--timeout <SECONDS>'", HELP],
    ),
    wrong(
        "an unknown sandbox mode",
        &["exec", "--sandbox", "open", "hi"],
        2,
        &[
            "invalid value 'open' for '--sandbox <MODE>'",
            "[possible values: read-only, workspace-write, danger-full-access]",
        ],
    ),
    wrong(
        "an unknown way to answer requests",
        &["exec", "--unattended", "maybe", "hi"],
        2,
        &[
            "invalid value 'maybe' for '--unattended <HOW>'",
            "[possible values: ask, deny, rules]",
        ],
    ),
    wrong(
        "questions without a terminal",
        &["exec", "--unattended", "ask", "hi"],
        2,
        &["--unattended ask needs a terminal", "use deny or rules"],
    ),
    wrong(
        "--all without --last",
        &["exec", "resume", "--all", "x"],
        2,
        &["required arguments were not provided", "--last", HELP],
    ),
    wrong(
        "no thread to resume",
        &["exec", "resume"],
        2,
        &[
            "name a thread: its id, or --last",
            "`raddle thread list` has the ids",
        ],
    ),
    wrong(
        "a thread that is no id",
        &["exec", "resume", "nope", "hi"],
        2,
        &["`nope` is not a thread id", "`raddle thread list`"],
    ),
    wrong(
        "no prompt",
        &["exec"],
        2,
        &["give a prompt, or - to read it from stdin"],
    ),
    wrong(
        "an empty prompt",
        &["exec", ""],
        2,
        &["the prompt is empty", "describe the task for the agent"],
    ),
    wrong(
        "a prompt from a folder",
        &["exec", "-"],
        2,
        &["cannot read the prompt from stdin", "Is a directory"],
    )
    .with_stdin("{HOME}"),
    wrong(
        "a budget of an unknown kind",
        &["exec", "--budget", "euro=1", "hi"],
        2,
        &[
            "invalid value 'euro=1'",
            "`euro` is none of tokens, usd, seconds, tool_calls",
        ],
    ),
    wrong(
        "a budget in words",
        &["exec", "--budget", "tokens=lots", "hi"],
        2,
        &["invalid value 'tokens=lots'", "give a number above 0"],
    ),
    wrong(
        "a budget without a number",
        &["exec", "--budget", "tokens", "hi"],
        2,
        &["`tokens` has no `=`", "write key=number"],
    ),
    wrong(
        "a negative budget",
        &["exec", "--budget", "usd=-1", "hi"],
        2,
        &["invalid value 'usd=-1'", "give a number above 0"],
    ),
    wrong(
        "a setting without a value",
        &["-c", "model", "config", "list"],
        2,
        &[
            "invalid value 'model' for '--config <KEY=VALUE>'",
            "`model` has no `=`; write key=value",
        ],
    ),
    wrong(
        "a setting without a key",
        &["-c", "=x", "config", "list"],
        2,
        &[
            "invalid value '=x' for '--config <KEY=VALUE>'",
            "the key must not be empty",
        ],
    ),
    wrong(
        "a setting with an invalid key",
        &["-c", "a..b=1", "config", "list"],
        2,
        &[
            "`a..b`: unquoted keys cannot be empty",
            "expected letters, numbers",
        ],
    ),
    wrong(
        "a setting with an unknown sandbox mode",
        &["exec", "-c", "sandbox_mode=open", "hi"],
        2,
        &[
            "sandbox_mode cannot be \"open\"",
            "use read-only, workspace-write, danger-full-access",
        ],
    ),
    wrong(
        "an unknown approval policy of judge",
        &["judge", "--approval-policy", "often", "ls"],
        2,
        &[
            "invalid value 'often'",
            "[possible values: untrusted, on-request, never]",
        ],
    ),
    wrong(
        "a sandbox without a command",
        &["sandbox"],
        2,
        &[
            "required arguments were not provided",
            "Usage: raddle sandbox -- <COMMAND>...",
        ],
    ),
    wrong(
        "a sandbox that both writes and does not",
        &["sandbox", "--read-only", "--write", "/tmp", "--", "true"],
        2,
        &["'--read-only' cannot be used with '--write <PATH>'", HELP],
    ),
    wrong(
        "an export of all threads to nowhere",
        &["thread", "export", "--all"],
        2,
        &["required arguments were not provided", "--out <FILE|DIR>"],
    ),
    wrong(
        "an MCP server without a program or an address",
        &["mcp", "add", "x"],
        2,
        &[
            "required arguments were not provided",
            "Usage: raddle mcp add [OPTIONS] <NAME> (--url <URL> | -- <COMMAND>...)",
        ],
    ),
    wrong(
        "an MCP server with a program and an address",
        &["mcp", "add", "x", "--url", "http://h", "--", "npx"],
        2,
        &["cannot be used with", HELP],
    ),
    wrong(
        "a variable of an MCP server without its value",
        &["mcp", "add", "x", "--env", "A", "--", "npx"],
        2,
        &[
            "invalid value 'A' for '--env <KEY=VALUE>'",
            "write KEY=VALUE",
        ],
    ),
    wrong(
        "a variable of an MCP server that is an address",
        &["mcp", "add", "x", "--env", "A=b", "--url", "http://h"],
        2,
        &[
            "'--env <KEY=VALUE>' cannot be used with '--url <URL>'",
            HELP,
        ],
    ),
];
