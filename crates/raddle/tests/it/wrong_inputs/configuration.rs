//! Wrong keys and values in `config.toml`, and in the commands that change it.

use super::{WrongInput, wrong};

/// A profile that would allow more if its invalid value were left out.
const FILES_ARE_NO_TABLE: &str = "default_permissions = 'mine'\nmodel = 'llamacpp/any'\n\
     [permissions.mine]\nextends = ':workspace'\nfilesystem = 'deny'\n";

pub(super) const TABLE: &[WrongInput] = &[
    wrong(
        "text that is not TOML",
        &["exec", "hi"],
        1,
        &[
            "HOME/config.toml is not valid TOML",
            "line 2: string values must be quoted",
        ],
    )
    .with_config("model = 'x'\nkey = x\n"),
    wrong(
        "a key that is there twice",
        &["app-server"],
        1,
        &[
            "HOME/config.toml is not valid TOML",
            "line 2: duplicate key",
        ],
    )
    .with_config("model = 'x'\nmodel = 'y'\n"),
    wrong(
        "a change of text that is not TOML",
        &["config", "set", "model", "x"],
        1,
        &[
            "the configuration cannot be used",
            "fix that file, or move it away",
            "line 1",
        ],
    )
    .with_config("model = \n"),
    wrong(
        "a daemon whose configuration is not TOML",
        &["daemon", "start"],
        1,
        &[
            "HOME/config.toml is not valid TOML: line 1",
            "the daemon did not start",
        ],
    )
    .with_config("model = \n"),
    wrong(
        "an unknown key",
        &["doctor"],
        1,
        &[
            "`modle` is not used here (did you mean `model`?)",
            "change it in HOME/config.toml",
        ],
    )
    .with_config("modle = 'x'\n"),
    wrong(
        "a model that is a number",
        &["exec", "hi"],
        1,
        &["`model` must be a string", "HOME/config.toml"],
    )
    .with_config("model = 7\n"),
    wrong(
        "a sandbox mode that is a number",
        &["exec", "hi"],
        1,
        &[
            "sandbox_mode is of the type integer",
            "set it to the string read-only, workspace-write or danger-full-access",
            "HOME/config.toml",
        ],
    )
    .with_config("sandbox_mode = 3\nmodel = 'llamacpp/any'\n"),
    wrong(
        "a sandbox mode that is unknown",
        &["exec", "hi"],
        1,
        &[
            "sandbox_mode is `open`, which is unknown",
            "set it to read-only, workspace-write or danger-full-access, in HOME/config.toml",
        ],
    )
    .with_config("sandbox_mode = 'open'\nmodel = 'llamacpp/any'\n"),
    wrong(
        "an approval policy that is unknown",
        &["exec", "hi"],
        1,
        &[
            "the thread cannot be started",
            "`approval_policy` must be one of untrusted, on-request, never",
            "in HOME/config.toml",
        ],
    )
    .with_config("approval_policy = 'sometimes'\nmodel = 'llamacpp/any'\n"),
    wrong(
        "a context window in words",
        &["doctor"],
        1,
        &[
            "`model_context_window` must be a whole number",
            "change it in HOME/config.toml",
        ],
    )
    .with_config("model_context_window = 'wide'\n"),
    wrong(
        "a configured budget of an unknown kind",
        &["exec", "hi"],
        1,
        &[
            "the thread cannot be started",
            "`budget.turn` has no `euro`",
            "write one of tokens, usd, seconds, tool_calls, in HOME/config.toml",
        ],
    )
    .with_config("budget.turn.euro = 1\nmodel = 'llamacpp/any'\n"),
    wrong(
        "a configured budget in words",
        &["exec", "hi"],
        1,
        &["`budget.turn.tokens` must be a whole number, not below 0, in HOME/config.toml"],
    )
    .with_config("budget.turn.tokens = 'many'\nmodel = 'llamacpp/any'\n"),
    wrong(
        "a budget in money without a price",
        &["exec", "hi"],
        4,
        &[
            "this turn may use $1.00",
            "the price of the model \"m\" of the provider \"own\" is not known",
            "set it under [[prices]] in config.toml, or remove budget.turn.usd",
        ],
    )
    .with_config(
        "budget.turn.usd = 1\nmodel = 'own/m'\nmodel_providers.own.base_url = 'http://{MOCK}/v1'\n",
    ),
    wrong(
        "a fallback that is no list",
        &["exec", "hi"],
        1,
        &[
            "`fallback` must be a list of at most 8 texts \"PROVIDER/MODEL\"",
            "HOME/config.toml",
        ],
    )
    .with_config("fallback = 'x'\nmodel = 'llamacpp/any'\n"),
    wrong(
        "a permission profile that is unknown",
        &["exec", "hi"],
        1,
        &[
            "unknown permission profile `mine`",
            "use one of :read-only, :workspace, :danger-full-access, or add [permissions.NAME]",
        ],
    )
    .with_config("default_permissions = 'mine'\nmodel = 'llamacpp/any'\n"),
    wrong(
        "a permission profile that is no table",
        &["exec", "hi"],
        1,
        &[
            "the permission profile `mine`: it must be a table",
            "write its keys under [permissions.NAME], in HOME/config.toml",
        ],
    )
    .with_config("default_permissions = 'mine'\npermissions.mine = 5\nmodel = 'llamacpp/any'\n"),
    wrong(
        "a profile whose files are no table",
        &["exec", "hi"],
        1,
        &[
            "the permission profile `mine`: `filesystem` must be a table of paths and access levels",
            "such as { \":root\" = \"read\" }, in HOME/config.toml",
        ],
    )
    .with_config(FILES_ARE_NO_TABLE),
    wrong(
        "a verdict under a profile whose files are no table",
        &["judge", "ls"],
        1,
        &[
            "the permission profile `mine`: `filesystem` must be a table of paths and access levels",
            "HOME/config.toml",
        ],
    )
    .with_config(FILES_ARE_NO_TABLE),
    wrong(
        "a verdict under a profile whose network is no table",
        &["judge", "ls"],
        1,
        &["`network` must be a table, such as { enabled = false }, in HOME/config.toml"],
    )
    .with_config(
        "default_permissions = 'mine'\npermissions.mine = { extends = ':workspace', network = false }\n",
    ),
    wrong(
        "a verdict under a default profile that is a number",
        &["judge", "ls"],
        1,
        &["`default_permissions` must be the name of a permission profile, in HOME/config.toml"],
    )
    .with_config("default_permissions = 7\n"),
    wrong(
        "a verdict under a sandbox mode that is a number",
        &["judge", "ls"],
        1,
        &[
            "sandbox_mode is of the type integer",
            "read-only, workspace-write or danger-full-access, in HOME/config.toml",
        ],
    )
    .with_config("sandbox_mode = 3\n"),
    wrong(
        "a verdict with denied hosts that are no list",
        &["judge", "ls"],
        1,
        &["sandbox_network in the configuration: `deny` must be a list of hosts"],
    )
    .with_config(
        "sandbox_mode = 'workspace-write'\nsandbox_workspace_write.network_access = true\n\
         sandbox_network.deny = 'example.com'\n",
    ),
    wrong(
        "a built-in profile with another description",
        &["exec", "hi"],
        1,
        &[
            "the permission profile `:workspace`: it is built in and cannot be changed",
            "give your profile a name without `:`, and let it extend this one, in HOME/config.toml",
        ],
    )
    .with_config(
        "default_permissions = ':workspace'\nmodel = 'llamacpp/any'\n\
         [permissions.':workspace'.filesystem]\n':project_roots' = 'read'\n",
    ),
    wrong(
        "budgets that are no table",
        &["exec", "hi"],
        1,
        &["`budget` must be a table with the tables `turn` and `thread`, in HOME/config.toml"],
    )
    .with_config("budget = 5\nmodel = 'llamacpp/any'\n"),
    wrong(
        "a budget of an unknown scope",
        &["exec", "hi"],
        1,
        &["`budget` has no `turns`; write one of turn, thread, in HOME/config.toml"],
    )
    .with_config("budget.turns.tokens = 5\nmodel = 'llamacpp/any'\n"),
    wrong(
        "a disabled skill that is disabled in words",
        &["doctor"],
        1,
        &[
            "`enabled` of `skills.config` must be true or false",
            "change it in HOME/config.toml",
        ],
    )
    .with_config("model = 'mock/mock'\n[[skills.config]]\nname = 'deploy'\nenabled = 'no'\n"),
    wrong(
        "a question about an unknown key",
        &["config", "get", "modle"],
        1,
        &["`modle` is not set", "did you mean `model`?"],
    ),
    wrong(
        "a removal of a key that is not set",
        &["config", "unset", "model"],
        1,
        &[
            "`model` is not set in HOME/config.toml, so nothing was removed",
            "`raddle config list --origin` shows where each value comes from",
        ],
    ),
    wrong(
        "a removal of a misspelt key",
        &["config", "unset", "modle"],
        1,
        &[
            "`modle` is not set in HOME/config.toml",
            "did you mean `model`?",
        ],
    )
    .with_config("model = 'x'\n"),
    wrong(
        "a number as the model",
        &["config", "set", "model", "7"],
        1,
        &["`model` must be a string"],
    ),
    wrong(
        "an unknown word as the sandbox mode",
        &["config", "set", "sandbox_mode", "open"],
        1,
        &["`sandbox_mode` must be one of read-only, workspace-write, danger-full-access"],
    ),
    wrong(
        "a key without a name",
        &["config", "set", "", "x"],
        1,
        &["the key must not be empty"],
    ),
    wrong(
        "a first configuration where there is one",
        &["init", "--model", "llamacpp/any", "--yes"],
        1,
        &[
            "HOME/config.toml is there already",
            "change it with `raddle config set model llamacpp/any`, or replace it with --force",
        ],
    )
    .with_config("model = 'x'\n"),
    wrong(
        "an MCP server without a program",
        &["mcp", "get", "x"],
        1,
        &[
            "the MCP server `x` cannot be used: it has neither `command` nor `url`",
            "set `command` for a program, or `url` for an HTTP server, in HOME/config.toml",
        ],
    )
    .with_config("[mcp_servers.x]\nenabled = true\n"),
    wrong(
        "an MCP server with a token in the file",
        &["doctor"],
        1,
        &[
            "the MCP server `x` cannot be used: `bearer_token` is not supported",
            "put the token into an environment variable, and name that with `bearer_token_env_var`",
            "change it in HOME/config.toml",
        ],
    )
    .with_config("[mcp_servers.x]\nurl = 'http://h'\nbearer_token = 'x'\n"),
    wrong(
        "an MCP server with a misspelt key",
        &["doctor"],
        1,
        &[
            "`tool_timeout_secs` under [mcp_servers.x] is not used here",
            "(did you mean `tool_timeout_sec`?)",
        ],
    )
    .with_config("[mcp_servers.x]\ncommand = 'x'\ntool_timeout_secs = 5\n"),
    wrong(
        "MCP servers that are no table",
        &["mcp", "list"],
        0,
        &["`mcp_servers` must be a table, in HOME/config.toml"],
    )
    .with_config("mcp_servers = 'x'\n"),
    wrong(
        "an MCP server that is not configured",
        &["mcp", "get", "docs"],
        1,
        &["no MCP server is named `docs`; use one of files"],
    )
    .with_config("[mcp_servers.files]\ncommand = 'x'\n"),
    wrong(
        "the removal of an MCP server where none is configured",
        &["mcp", "remove", "files"],
        1,
        &[
            "no MCP server is named `files`, and none is configured",
            "`raddle mcp add` adds one",
        ],
    ),
    wrong(
        "an MCP server with an invalid name",
        &["mcp", "add", "my files", "--", "npx"],
        1,
        &[
            "the MCP server `my files` cannot be used",
            "its name may have only letters, digits and `_-:@/.`; use another name",
        ],
    ),
    wrong(
        "an MCP server with an address of another kind",
        &["mcp", "add", "x", "--url", "ftp://h"],
        1,
        &["`url` must be an address with http:// or https://"],
    ),
    wrong(
        "an MCP server with a timeout of 0",
        &["config", "set", "mcp_servers.x.tool_timeout_sec", "0"],
        1,
        &["`tool_timeout_sec` under [mcp_servers.x] must be a number of seconds above 0"],
    ),
];
