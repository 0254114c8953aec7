//! Files that are missing, damaged or something else, and homes that cannot be used.

use super::{WrongInput, wrong};

/// An id that no thread has.
const ID: &str = "0199a000-0000-7000-8000-000000000000";

/// A home that nobody may create, not even root.
const CLOSED: &[(&str, &str)] = &[("RADDLE_HOME", "/sys/raddle-home")];

/// A home that is a file.
const FILE: &[(&str, &str)] = &[("RADDLE_HOME", "{HOME}/file")];

const OTHER_HOME: &str = "name another home with RADDLE_HOME";

pub(super) const TABLE: &[WrongInput] = &[
    wrong(
        "a schema that is missing",
        &["exec", "--output-schema", "/nowhere.json", "hi"],
        2,
        &[
            "cannot read --output-schema /nowhere.json",
            "name another path",
            "No such file",
        ],
    ),
    wrong(
        "a schema that is not JSON",
        &["exec", "--output-schema", "{HOME}/s.json", "hi"],
        2,
        &[
            "HOME/s.json is no JSON Schema",
            "correct it, or name another file",
            "line 1 column 1",
        ],
    )
    .with_files(&[("s.json", "{")]),
    wrong(
        "JSON that is no schema",
        &["exec", "--output-schema", "{HOME}/s.json", "hi"],
        2,
        &[
            "HOME/s.json is no JSON Schema",
            "correct it",
            "/type cannot be 7",
        ],
    )
    .with_files(&[("s.json", "{\"type\": 7}")]),
    wrong(
        "an image that is missing",
        &["exec", "--image", "/nowhere.png", "hi"],
        2,
        &[
            "cannot read --image /nowhere.png",
            "name another path",
            "No such file",
        ],
    ),
    wrong(
        "a further folder that is missing",
        &["exec", "--add-dir", "/nowhere", "hi"],
        2,
        &[
            "cannot use --add-dir /nowhere",
            "name another path",
            "No such file or directory",
        ],
    ),
    wrong(
        "a further folder that is a file",
        &["exec", "--add-dir", "{HOME}/file", "hi"],
        2,
        &[
            "cannot use --add-dir HOME/file",
            "name another path",
            "it is no folder",
        ],
    )
    .with_files(&[("file", "")]),
    wrong(
        "a path for the sandbox that is missing",
        &["sandbox", "--write", "/nowhere", "--", "true"],
        1,
        &[
            "cannot use /nowhere; name an existing path",
            "No such file or directory",
        ],
    ),
    wrong(
        "a working folder that is missing",
        &["exec", "--cd", "/nowhere", "hi"],
        2,
        &[
            "cannot work in /nowhere",
            "name another path",
            "No such file or directory",
        ],
    ),
    wrong(
        "a working folder that is a file",
        &["exec", "--cd", "{HOME}/file", "hi"],
        2,
        &[
            "cannot work in HOME/file",
            "name another path",
            "it is no folder",
        ],
    )
    .with_files(&[("file", "")]),
    wrong(
        "an answer to a folder that is missing",
        &["exec", "--output-last-message", "/nowhere/answer", "hi"],
        2,
        &[
            "cannot write --output-last-message /nowhere/answer",
            "name another path",
            "No such file",
        ],
    ),
    wrong(
        "a configuration that is a folder",
        &["config", "list"],
        1,
        &[
            "fix that file, or move it away",
            "cannot read HOME/config.toml",
            "Is a directory",
        ],
    )
    .with_files(&[("config.toml/file", "")]),
    wrong(
        "a home that is a file, for exec",
        &["exec", "hi"],
        1,
        &[
            "the home HOME/file is not a folder",
            "move that file away",
            OTHER_HOME,
        ],
    )
    .with_files(&[("file", "")])
    .with_environment(FILE),
    wrong(
        "a home that is a file, for init",
        &["init", "--model", "llamacpp/any", "--yes"],
        1,
        &[
            "the home HOME/file is not a folder",
            "move that file away",
            OTHER_HOME,
        ],
    )
    .with_files(&[("file", "")])
    .with_environment(FILE),
    wrong(
        "a home that cannot be written, for exec",
        &[
            "exec",
            "-c",
            "model=own/m",
            "-c",
            "model_providers.own.base_url=http://{MOCK}/v1",
            "hi",
        ],
        1,
        &[
            "threads cannot be stored in /sys/raddle-home/threads",
            "(os error ",
            "give this user write access to that folder",
            OTHER_HOME,
        ],
    )
    .with_environment(CLOSED),
    wrong(
        "a home that cannot be written, for init",
        &["init", "--model", "llamacpp/any", "--yes"],
        1,
        &[
            "cannot make /sys/raddle-home",
            "give this user write access",
            OTHER_HOME,
            "(os error ",
        ],
    )
    .with_environment(CLOSED),
    wrong(
        "a home that cannot be written, for config",
        &["config", "set", "model", "x"],
        1,
        &[
            "cannot write /sys/raddle-home/config.toml",
            "(os error ",
            "give this user write access",
            OTHER_HOME,
        ],
    )
    .with_environment(CLOSED),
    wrong(
        "a home that cannot be written, for the daemon",
        &["daemon", "start"],
        1,
        &[
            "cannot make /sys/raddle-home/daemon",
            "give this user write access",
            OTHER_HOME,
        ],
    )
    .with_environment(CLOSED),
    wrong(
        "a file in the place of the threads",
        &["exec", "hi"],
        1,
        &[
            "threads cannot be stored in HOME/threads",
            "(os error ",
            OTHER_HOME,
        ],
    )
    .with_config("model = 'own/m'\nmodel_providers.own.base_url = 'http://{MOCK}/v1'\n")
    .with_files(&[("threads", "")]),
    wrong(
        "no home",
        &["thread", "list"],
        1,
        &["neither RADDLE_HOME nor HOME is set", "set one of them"],
    )
    .with_environment(&[("RADDLE_HOME", ""), ("HOME", "")]),
    wrong(
        "rules that are not TOML",
        &["judge", "ls"],
        1,
        &[
            "the rules cannot be used",
            "correct them in HOME/rules.toml",
            "line 1, column 8",
        ],
    )
    .with_files(&[("rules.toml", "[[rule]\n")]),
    wrong(
        "a rule without a valid verdict",
        &["exec", "hi"],
        1,
        &[
            "the rules cannot be used; correct them in HOME/rules.toml",
            "rule 1: it has no verdict",
            "write verdict = \"allow\", \"ask\" or \"deny\"",
        ],
    )
    .with_files(&[(
        "rules.toml",
        "[[rule]]\ncommand = ['ls']\nverdict = 'maybe'\n",
    )]),
    wrong(
        "a rule without a subject",
        &["judge", "ls"],
        1,
        &[
            "correct them in HOME/rules.toml",
            "rule 1: it has no subject, or several",
            "write one of command, write, read, host and tool",
        ],
    )
    .with_files(&[("rules.toml", "[[rule]]\nverdict = 'allow'\n")]),
    wrong(
        "rules that are a folder",
        &["judge", "ls"],
        1,
        &[
            "cannot read the rules in HOME/rules.toml",
            "or move it away",
            "Is a directory",
        ],
    )
    .with_files(&[("rules.toml/file", "")]),
    wrong(
        "an unknown thread to show",
        &["thread", "show", ID],
        1,
        &[
            "there are no threads in HOME/threads",
            "RADDLE_HOME names the home",
            "raddle thread list",
        ],
    ),
    wrong(
        "an unknown thread to export",
        &["thread", "export", ID],
        1,
        &[
            "no thread has an id that begins with 0199a000",
            "see `raddle thread list`",
        ],
    ),
    wrong(
        "an unknown thread to delete",
        &["thread", "delete", ID],
        1,
        &[
            "there are no threads in HOME/threads",
            "RADDLE_HOME names the home",
            "raddle thread list",
        ],
    ),
    wrong(
        "an unknown thread to verify",
        &["thread", "verify", ID],
        1,
        &[
            "there are no threads in HOME/threads",
            "RADDLE_HOME names the home",
            "raddle thread list",
        ],
    ),
    wrong(
        "an export that is missing",
        &["thread", "import", "/nowhere.jsonl"],
        1,
        &[
            "cannot open /nowhere.jsonl",
            "name a file that `raddle thread export` wrote",
            "No such file",
        ],
    ),
    wrong(
        "a damaged export",
        &["thread", "import", "{HOME}/e.jsonl"],
        1,
        &[
            "HOME/e.jsonl: this is not an exported thread",
            "the first line does not name the format",
            "name a file that `raddle thread export` wrote",
        ],
    )
    .with_files(&[("e.jsonl", "{}\nnot JSON\n")]),
    wrong(
        "an empty export",
        &["thread", "import", "{HOME}/e.jsonl"],
        1,
        &[
            "HOME/e.jsonl: this is not an exported thread",
            "it is empty",
            "`raddle thread export`",
        ],
    )
    .with_files(&[("e.jsonl", "")]),
    wrong(
        "a script of the mock that is missing",
        &["mock", "--script", "/nowhere.toml"],
        1,
        &[
            "cannot read /nowhere.toml",
            "correct --script",
            "No such file",
        ],
    ),
    wrong(
        "a script of the mock with an unknown key",
        &[
            "mock",
            "--listen",
            "127.0.0.1:0",
            "--script",
            "{HOME}/s.toml",
        ],
        1,
        &[
            "HOME/s.toml is no script",
            "docs/mock.md has all keys",
            "unknown field `stps`",
        ],
    )
    .with_files(&[("s.toml", "[[answer]]\nstps = []\n")]),
    wrong(
        "a bubblewrap that is missing",
        &["sandbox", "--", "true"],
        1,
        &[
            "which this machine does not support",
            "install bubblewrap",
            "`raddle doctor`",
        ],
    )
    .with_config("sandbox_bwrap_path = '/nowhere/bwrap'\n"),
];
