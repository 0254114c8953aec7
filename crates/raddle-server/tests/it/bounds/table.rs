//! Every request that starts something, and the bounds in its members.

/// A request, and which of its members bound the agent or a command.
pub(super) struct RequestBounds {
    pub(super) method: &'static str,
    /// Members that bound nothing: they concern the model, its history, its output, or a name.
    pub(super) free: &'static str,
    pub(super) bounds: &'static [BoundMember],
}

/// A member that bounds something.
pub(super) struct BoundMember {
    pub(super) member: &'static str,
    pub(super) probes: &'static [Probe],
    /// Probes that another member has too.
    pub(super) shared: &'static [Probe],
}

/// A value for the member, as JSON, and the expected outcome.
pub(super) struct Probe(pub(super) &'static str, pub(super) Expectation);

pub(super) enum Expectation {
    /// The thread's settings then contain this, as JSON.
    Shows(&'static str),
    /// The request is rejected, and the error contains this.
    Refused(&'static str),
    /// The request succeeds: it asks for no bound.
    Done,
    /// The request succeeds; this file of the repository contains this text and shows how.
    ShownBy(&'static str, &'static str),
}

use Expectation::{Done, Refused, ShownBy, Shows};

const TOOL_GATE: &str = "crates/raddle/tests/it/model/tool_gate.rs";
const SETTINGS: &str = "conformance/thread/settings/update.md";
const TURN_SETTINGS: &str = "conformance/turn/settings/update.md";
const COMMAND: &str = "conformance/command/exec.md";
const PROCESS: &str = "conformance/process/spawn.md";

pub(super) const READ_ONLY: &str = r#"{"sandbox": {"type": "readOnly", "networkAccess": false},
    "activePermissionProfile": {"id": ":read-only", "extends": null}}"#;
const WORKSPACE: &str = r#"{"sandbox": {"type": "workspaceWrite", "writableRoots": [], "networkAccess": false},
    "activePermissionProfile": {"id": ":workspace", "extends": null}}"#;
const MINE: &str = r#"{"sandbox": {"type": "readOnly", "networkAccess": true},
    "activePermissionProfile": {"id": "mine", "extends": ":read-only"}}"#;

/// The copies of these tests have no folder but their workspace. How a copy bounds a thread is in
/// `conformance/thread/workspace/read.md`.
const WORKSPACE_MODE: BoundMember = BoundMember {
    member: "workspace",
    probes: &[
        Probe(r#""shared""#, Done),
        Probe(r#""copy""#, Refused("it is not the workspace")),
        Probe(r#""elsewhere""#, Refused("workspace")),
    ],
    shared: &[],
};

const FORKED_WORKSPACE_MODE: BoundMember = BoundMember {
    member: "workspace",
    probes: &[
        Probe(r#""shared""#, Done),
        Probe(
            r#""copy""#,
            ShownBy("conformance/thread/fork.md", r#""cwd": "$copy""#),
        ),
        Probe(r#""elsewhere""#, Refused("workspace")),
    ],
    shared: &[],
};

const PERMISSIONS: BoundMember = BoundMember {
    member: "permissions",
    probes: &[
        Probe(r#"":read-only""#, Shows(READ_ONLY)),
        Probe(r#"":workspace""#, Shows(WORKSPACE)),
        Probe(r#""mine""#, Shows(MINE)),
        Probe(
            r#"":danger-full-access""#,
            Shows(
                r#"{"sandbox": {"type": "dangerFullAccess"},
                "activePermissionProfile": {"id": ":danger-full-access", "extends": null}}"#,
            ),
        ),
        Probe(
            r#"":nope""#,
            Refused(":read-only, :workspace, :danger-full-access, mine"),
        ),
        Probe(
            r#""nope""#,
            Refused(":read-only, :workspace, :danger-full-access, mine"),
        ),
        Probe(r#""""#, Refused("permission profile")),
        Probe("null", Shows(CONFIGURED)),
    ],
    shared: &[],
};

/// The configuration of these tests.
const CONFIGURED: &str =
    r#"{"sandbox": {"type": "workspaceWrite"}, "activePermissionProfile": null}"#;

const APPROVAL: BoundMember = BoundMember {
    member: "approvalPolicy",
    probes: &[
        Probe(
            r#""untrusted""#,
            Shows(r#"{"approvalPolicy": "untrusted"}"#),
        ),
        Probe(r#""never""#, Shows(r#"{"approvalPolicy": "never"}"#)),
        Probe(r#""sometimes""#, Refused("approvalPolicy")),
        Probe(
            r#"{"granular": {"sandbox_approval": false, "rules": true, "mcp_elicitations": false}}"#,
            Shows(r#"{"approvalPolicy": {"granular": {"sandbox_approval": false}}}"#),
        ),
        Probe(
            r#"{"granular": {"sandbox_approval": true, "rules": true, "mcp_elicitations": true, "hosts": false}}"#,
            Refused("hosts"),
        ),
    ],
    shared: &[],
};

const REVIEWER: BoundMember = BoundMember {
    member: "approvalsReviewer",
    probes: &[
        Probe(
            r#""auto_review""#,
            Shows(r#"{"approvalsReviewer": "auto_review"}"#),
        ),
        Probe(r#""user""#, Shows(r#"{"approvalsReviewer": "user"}"#)),
        Probe(r#""nobody""#, Refused("approvalsReviewer")),
    ],
    shared: &[],
};

const CWD: BoundMember = BoundMember {
    member: "cwd",
    probes: &[Probe(r#""/usr""#, Shows(r#"{"cwd": "/usr"}"#))],
    shared: &[],
};

const ROOTS: BoundMember = BoundMember {
    member: "runtimeWorkspaceRoots",
    probes: &[
        Probe(
            r#"["/usr"]"#,
            Shows(r#"{"runtimeWorkspaceRoots": ["/usr"]}"#),
        ),
        Probe("[]", Shows(r#"{"runtimeWorkspaceRoots": []}"#)),
        Probe(r#"["usr"]"#, Refused("absolute")),
    ],
    shared: &[],
};

/// A mode, for requests that open a thread.
const SANDBOX: BoundMember = BoundMember {
    member: "sandbox",
    probes: &[
        Probe(
            r#""read-only""#,
            Shows(r#"{"sandbox": {"type": "readOnly"}, "activePermissionProfile": null}"#),
        ),
        Probe(r#""open""#, Refused("open")),
    ],
    shared: &[],
};

/// A policy, for requests on an existing thread.
const SANDBOX_POLICY: BoundMember = BoundMember {
    member: "sandboxPolicy",
    probes: &[
        Probe(
            r#"{"type": "readOnly"}"#,
            Shows(r#"{"sandbox": {"type": "readOnly"}, "activePermissionProfile": null}"#),
        ),
        Probe(
            r#"{"type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true}"#,
            Shows(
                r#"{"sandbox": {"type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true}}"#,
            ),
        ),
        Probe(r#"{"type": "open"}"#, Refused("sandboxPolicy")),
        Probe(
            r#"{"type": "readOnly", "access": {"type": "restricted", "readableRoots": []}}"#,
            Refused("access"),
        ),
        Probe(
            r#"{"type": "readOnly", "access": {"type": "fullAccess"}}"#,
            Shows(r#"{"sandbox": {"type": "readOnly"}}"#),
        ),
        Probe(
            r#"{"type": "workspaceWrite", "readOnlyAccess": {"type": "restricted"}}"#,
            Refused("readOnlyAccess"),
        ),
        Probe(
            r#"{"type": "workspaceWrite", "writableRoots": ["x"]}"#,
            Refused("absolute"),
        ),
        Probe(
            r#"{"type": "dangerFullAccess", "readableRoots": []}"#,
            Refused("readableRoots"),
        ),
    ],
    shared: &[],
};

/// Probes of a request's own configuration with the same outcome for new and existing threads.
const CONFIG_ALWAYS: &[Probe] = &[
    Probe(
        r#"{"sandbox_mode": "read-only"}"#,
        Shows(r#"{"sandbox": {"type": "readOnly"}}"#),
    ),
    Probe(r#"{"sandbox_mode": "open"}"#, Refused("sandbox_mode")),
    Probe(r#"{"sandbox_mode": ""}"#, Refused("sandbox_mode")),
    Probe(r#"{"sandbox_mode": 3}"#, Refused("workspace-write")),
    Probe(r#"{"sandbox_mode": true}"#, Refused("workspace-write")),
    Probe(
        r#"{"sandbox_mode": ["read-only"]}"#,
        Refused("workspace-write"),
    ),
    Probe(r#"{"default_permissions": ":read-only"}"#, Shows(READ_ONLY)),
    Probe(r#"{"default_permissions": "nope"}"#, Refused("nope")),
    Probe(
        r#"{"approval_policy": "untrusted"}"#,
        Shows(r#"{"approvalPolicy": "untrusted"}"#),
    ),
    Probe(
        r#"{"approval_policy": "sometimes"}"#,
        Refused("approval_policy"),
    ),
    Probe(
        r#"{"approvals_reviewer": "auto_review"}"#,
        Shows(r#"{"approvalsReviewer": "auto_review"}"#),
    ),
    Probe(
        r#"{"sandbox_network.allow": []}"#,
        Refused("sandbox_network"),
    ),
    Probe(
        r#"{"shell_environment_policy": {"inherit": "none"}}"#,
        Refused("shell_environment_policy"),
    ),
    Probe(
        r#"{"shell_environment_policy": {"set": {"A": "b"}, "exclude": ["C"]}}"#,
        Refused("`exclude` under [shell_environment_policy] is not used here"),
    ),
    Probe(
        r#"{"shell_environment_policy.set.HAPI_SESSION_ID": "s1"}"#,
        Shows(CONFIGURED),
    ),
    Probe(
        r#"{"shell_environment_policy": {"set": {"AI_AGENT": "a"}}}"#,
        Shows(CONFIGURED),
    ),
    Probe(
        r#"{"shell_environment_policy.set.A": "b", "shell_environment_policy": {"set": {"A": "c"}}}"#,
        Refused("bound the same and differ"),
    ),
    Probe(
        r#"{"shell_environment_policy.set.PATH": "/x"}"#,
        Refused("`shell_environment_policy.set.PATH`: a variable of this name bounds commands"),
    ),
    Probe(
        r#"{"shell_environment_policy.set.https_proxy": "http://x"}"#,
        Refused("https_proxy"),
    ),
    Probe(
        r#"{"shell_environment_policy.set.A": 5}"#,
        Refused("a value must be a string"),
    ),
    Probe(
        r#"{"shell_environment_policy.set": "A=b"}"#,
        Refused("must be a table of strings"),
    ),
    Probe(
        r#"{"shell_environment_policy": "none"}"#,
        Refused("shell_environment_policy"),
    ),
    Probe(
        r#"{"allow_login_shell": true}"#,
        Refused("allow_login_shell"),
    ),
    Probe(r#"{"allow_login_shell": 0}"#, Refused("allow_login_shell")),
    Probe(r#"{"allowLoginShell": false}"#, Refused("allowLoginShell")),
    Probe(
        r#"{"budget.turns.tool_calls": 1}"#,
        Refused("did you mean `turn`?); write one of turn, thread"),
    ),
    Probe(
        r#"{"budget.turn.toolCalls": 1}"#,
        Refused("tokens, usd, seconds, tool_calls"),
    ),
    Probe(r#"{"budget": "1 call"}"#, Refused("budget")),
    Probe(r#"{"budget.turn": "1 call"}"#, Refused("[budget]")),
    Probe(r#"{"budgets.turn.tool_calls": 1}"#, Refused("budgets")),
    Probe(
        r#"{"budget": {"turn": {"tool_calls": "1"}}}"#,
        Refused("tool_calls"),
    ),
    Probe(
        r#"{"sandbox_mode": "workspace-write", "sandbox_workspace_write": {"networkAccess": false}}"#,
        Refused("network_access"),
    ),
    Probe(
        r#"{"sandbox_mode": "workspace-write", "sandbox_workspace_write.network_acces": false}"#,
        Refused("did you mean `network_access`?"),
    ),
    Probe(
        r#"{"sandbox_mode": "workspace-write", "sandbox_workspace_write": {"exclude_tmp": true}}"#,
        Refused("exclude_slash_tmp"),
    ),
    Probe(
        r#"{"sandbox_workspace_write": []}"#,
        Refused("sandbox_workspace_write"),
    ),
    Probe(r#"{"sandboxMode": "read-only"}"#, Refused("sandboxMode")),
    Probe(r#"{"sandbx_mode": "read-only"}"#, Refused("sandbx_mode")),
    Probe(r#"{"sandbox": "read-only"}"#, Refused("sandbox_mode")),
    Probe(
        r#"{"aproval_policy": "untrusted"}"#,
        Refused("aproval_policy"),
    ),
    Probe(
        r#"{"approvalPolicy": "untrusted"}"#,
        Refused("approvalPolicy"),
    ),
    Probe(r#"{"rules": [{"command": ["rm"]}]}"#, Refused("rules")),
    Probe(r#"{"unattended": "decline"}"#, Refused("unattended")),
    Probe(r#"{"network_access": false}"#, Refused("network_access")),
    Probe(r#"{"permission": ":read-only"}"#, Refused("permissions")),
    Probe(r#"{"tools.view_image": false}"#, Refused("tools")),
    Probe(r#"{"tools": {"view_image": false}}"#, Refused("tools")),
    // This bounds nothing: agents have the tool anyway.
    Probe(r#"{"tools.view_image": true}"#, Shows(CONFIGURED)),
    Probe(r#"{"tools": {"view_image": true}}"#, Shows(CONFIGURED)),
    // The server has no such tool.
    Probe(r#"{"tools.web_search": false}"#, Shows(CONFIGURED)),
    Probe(r#"{"tools.web_search": true}"#, Shows(CONFIGURED)),
    Probe(r#"{"tools": {"web_search": true}}"#, Shows(CONFIGURED)),
    Probe(
        r#"{"tools": {"web_search": {"context_size": "low"}}}"#,
        Shows(CONFIGURED),
    ),
    Probe(
        r#"{"tools": {"web_search": true, "shell": false}}"#,
        Refused("tools"),
    ),
    Probe(
        r#"{"disallowed_tools": ["exec_command"]}"#,
        Refused("`disallowed_tools` in `config` would bound nothing"),
    ),
    Probe(r#"{"denied_commands": ["rm"]}"#, Refused("sandbox_mode")),
    Probe(r#"{"max_turns": 1}"#, Refused("budget")),
    Probe(r#"{"read_only": true}"#, Refused("sandbox_mode")),
    // One bound, set twice.
    Probe(
        r#"{"budget": {"thread": {"tokens": 5}}, "budget.thread.tokens": 500000}"#,
        Refused("`config.budget` and `config.budget.thread.tokens` bound the same and differ"),
    ),
    Probe(
        r#"{"budget.thread": {"tokens": 5, "seconds": 9}, "budget": {"thread": {"tokens": 5}}}"#,
        Shows(CONFIGURED),
    ),
    Probe(
        r#"{"default_permissions": ":workspace", "sandbox_mode": "read-only"}"#,
        Refused("`config.default_permissions` and `config.sandbox_mode`"),
    ),
    Probe(
        r#"{"default_permissions": ":read-only", "sandbox_mode": "read-only"}"#,
        Shows(READ_ONLY),
    ),
    Probe(
        r#"{"model_reasoning_effort": "low", "mcp_servers": {}, "tool_output_token_limit": 5, "notify": []}"#,
        Shows(CONFIGURED),
    ),
];

/// The request's own configuration, for an existing thread. The options of a mode have no effect
/// without the mode.
const EXISTING_THREAD_CONFIG: BoundMember = BoundMember {
    member: "config",
    probes: &[
        Probe(
            r#"{"sandbox_workspace_write.exclude_slash_tmp": true}"#,
            Refused("sandbox_workspace_write"),
        ),
        Probe(
            r#"{"sandbox_mode": "workspace-write", "sandbox_workspace_write.exclude_slash_tmp": true}"#,
            Shows(r#"{"sandbox": {"type": "workspaceWrite", "excludeSlashTmp": true}}"#),
        ),
        Probe(r#"{"tui.theme": "dark"}"#, Shows(CONFIGURED)),
    ],
    shared: CONFIG_ALWAYS,
};

/// The request's own configuration.
const CONFIG: BoundMember = BoundMember {
    member: "config",
    probes: &[
        Probe(
            r#"{"sandbox_workspace_write.exclude_slash_tmp": true}"#,
            Shows(r#"{"sandbox": {"type": "workspaceWrite", "excludeSlashTmp": true}}"#),
        ),
        Probe(
            r#"{"sandbox_workspace_write": {"exclude_slash_tmp": 1}}"#,
            Refused("exclude_slash_tmp"),
        ),
        Probe(
            r#"{"default_permissions": 1}"#,
            Refused("default_permissions"),
        ),
        Probe(
            r#"{"default_permissions": "own", "permissions": {"own": {"extends": ":workspace", "network": {"enabled": true}}}}"#,
            Shows(
                r#"{"sandbox": {"type": "workspaceWrite", "networkAccess": true},
                "activePermissionProfile": {"id": "own", "extends": ":workspace"}}"#,
            ),
        ),
        Probe(
            r#"{"approvals_reviewer": "nobody"}"#,
            Refused("approvals_reviewer"),
        ),
        Probe(
            r#"{"sandbox_network": {"deny": ["example.com"]}}"#,
            Refused("sandbox_network"),
        ),
        Probe(
            r#"{"sandbox_accept_tier": "B"}"#,
            Refused("sandbox_accept_tier"),
        ),
        Probe(
            r#"{"tui.theme": "dark", "features": {"x": false}}"#,
            Shows(CONFIGURED),
        ),
    ],
    shared: CONFIG_ALWAYS,
};

const ENVIRONMENTS: BoundMember = BoundMember {
    member: "environments",
    probes: &[
        Probe(
            "[]",
            ShownBy(
                TOOL_GATE,
                "fn without_an_environment_the_agent_has_no_tools()",
            ),
        ),
        Probe(
            r#"[{"environmentId": "local", "cwd": "/usr"}]"#,
            Shows(r#"{"cwd": "/usr"}"#),
        ),
        Probe(
            r#"[{"environmentId": "local", "cwd": "/usr", "runtimeWorkspaceRoots": ["/etc"]}]"#,
            Shows(r#"{"cwd": "/usr", "runtimeWorkspaceRoots": ["/etc"]}"#),
        ),
        Probe(
            r#"[{"environmentId": "elsewhere", "cwd": "/usr"}]"#,
            Refused("elsewhere"),
        ),
        Probe(
            r#"[{"environmentId": "local", "cwd": "/usr"}, {"environmentId": "local", "cwd": "/etc"}]"#,
            Refused("one environment"),
        ),
    ],
    shared: &[],
};

pub(super) const TABLE: &[RequestBounds] = &[
    RequestBounds {
        method: "thread/start",
        free: "allowProviderModelFallback baseInstructions clientRequestId daybreakEnabled \
            developerInstructions dynamicTools ephemeral experimentalRawEvents historyMode \
            mockExperimentalField model modelProvider multiAgentMode personality projectId \
            selectedCapabilityRoots serviceName serviceTier sessionStartSource threadSource",
        bounds: &[
            APPROVAL,
            REVIEWER,
            CONFIG,
            CWD,
            ENVIRONMENTS,
            PERMISSIONS,
            ROOTS,
            SANDBOX,
            WORKSPACE_MODE,
        ],
    },
    RequestBounds {
        method: "thread/resume",
        free: "afterSeq baseInstructions developerInstructions excludeTurns history initialTurnsPage \
            model modelProvider path personality serviceTier threadId",
        bounds: &[
            APPROVAL,
            REVIEWER,
            EXISTING_THREAD_CONFIG,
            CWD,
            PERMISSIONS,
            ROOTS,
            SANDBOX,
        ],
    },
    RequestBounds {
        method: "thread/fork",
        free: "attachToSource baseInstructions beforeTurnId clientRequestId deferGoalContinuation \
            developerInstructions ephemeral excludeTurns experimentalDisablePredictionMcp \
            experimentalPredictionMode lastTurnId model modelProvider path serviceTier threadId \
            threadSource",
        bounds: &[
            APPROVAL,
            REVIEWER,
            EXISTING_THREAD_CONFIG,
            CWD,
            PERMISSIONS,
            ROOTS,
            SANDBOX,
            FORKED_WORKSPACE_MODE,
        ],
    },
    RequestBounds {
        method: "thread/settings/update",
        // A mode is an instruction for the model; there are no plugins to disable.
        free: "clientRequestId collaborationMode disabledPluginIds dynamicTools effort model \
            modelProvider multiAgentMode personality serviceTier summary threadId",
        bounds: &[
            APPROVAL,
            REVIEWER,
            CWD,
            PERMISSIONS,
            SANDBOX_POLICY,
            BoundMember {
                member: "budget",
                probes: &[
                    Probe(
                        r#"{"turn": {"tokens": 5}}"#,
                        ShownBy(SETTINGS, r#""budget": {"turn": {"tokens": 5}"#),
                    ),
                    Probe(r#"{"thread": {"usd": -1}}"#, Refused("budget.thread.usd")),
                    Probe(r#"{"thread": {"tool_calls": 5}}"#, Refused("toolCalls")),
                    Probe(r#"{"thread": {"Tokens": 5}}"#, Refused("tokens, usd")),
                    Probe(r#"{"turns": {"tokens": 5}}"#, Refused("turn, thread")),
                    Probe(r#"{"thread.tokens": 5}"#, Refused("turn, thread")),
                ],
                shared: &[],
            },
        ],
    },
    RequestBounds {
        method: "turn/start",
        // Asking for a programme grants nothing.
        free: "additionalContext clientRequestId clientUserMessageId collaborationMode \
            cyberAccessProgram disabledPluginIds effort input model modelProvider multiAgentMode \
            outputSchema parentTurnId personality responsesapiClientMetadata \
            responsesapiClientMetadataPatch rootTurnId serviceTier serviceTierForTurn summary \
            threadId toolOutput turnTrigger",
        bounds: &[
            APPROVAL,
            REVIEWER,
            CWD,
            ENVIRONMENTS,
            PERMISSIONS,
            ROOTS,
            SANDBOX_POLICY,
        ],
    },
    RequestBounds {
        method: "turn/settings/update",
        free: "effort model serviceTier summary threadId turnId",
        bounds: &[BoundMember {
            member: "approvalsReviewer",
            // Rejected for a running turn; else the response says that it changed nothing.
            probes: &[Probe(
                r#""user""#,
                ShownBy(
                    TURN_SETTINGS,
                    r#""turnId": "$turn", "approvalsReviewer": "user"}}"#,
                ),
            )],
            shared: &[],
        }],
    },
    RequestBounds {
        method: "command/exec",
        free: "command processId size streamStdin streamStdoutStderr tty",
        bounds: &[
            BoundMember {
                member: "cwd",
                probes: &[Probe(r#""usr""#, Refused("absolute"))],
                shared: &[],
            },
            BoundMember {
                member: "env",
                probes: &[Probe(r#"{"A": "b"}"#, ShownBy(COMMAND, r#""env": {"A""#))],
                shared: &[],
            },
            BoundMember {
                member: "disableOutputCap",
                probes: &[Probe("true", Done)],
                shared: &[],
            },
            BoundMember {
                member: "outputBytesCap",
                probes: &[Probe("5", ShownBy(COMMAND, r#""outputBytesCap": "#))],
                shared: &[],
            },
            BoundMember {
                member: "disableTimeout",
                probes: &[Probe("true", Done)],
                shared: &[],
            },
            BoundMember {
                member: "timeoutMs",
                probes: &[Probe("-1", Refused("timeoutMs"))],
                shared: &[],
            },
            BoundMember {
                member: "permissionProfile",
                probes: &[
                    Probe(r#"":danger-full-access""#, Done),
                    Probe(
                        r#"":nope""#,
                        Refused(":read-only, :workspace, :danger-full-access, mine"),
                    ),
                    Probe(
                        r#""nope""#,
                        Refused(":read-only, :workspace, :danger-full-access, mine"),
                    ),
                ],
                shared: &[],
            },
            BoundMember {
                member: "sandboxPolicy",
                probes: &[
                    Probe(r#"{"type": "dangerFullAccess"}"#, Done),
                    Probe(r#"{"type": "open"}"#, Refused("sandboxPolicy")),
                    Probe(
                        r#"{"type": "readOnly", "access": {"type": "restricted"}}"#,
                        Refused("access"),
                    ),
                ],
                shared: &[],
            },
        ],
    },
    RequestBounds {
        // It has no sandbox, by the contract; the operator can forbid it.
        method: "process/spawn",
        free: "command processHandle size streamStdin streamStdoutStderr tty",
        bounds: &[
            BoundMember {
                member: "cwd",
                probes: &[Probe(r#""usr""#, Refused("absolute"))],
                shared: &[],
            },
            BoundMember {
                member: "env",
                probes: &[Probe(r#"{"A": "b"}"#, ShownBy(PROCESS, r#""env": {"A""#))],
                shared: &[],
            },
            BoundMember {
                member: "outputBytesCap",
                probes: &[Probe("5", ShownBy(PROCESS, r#""outputBytesCap": "#))],
                shared: &[],
            },
            BoundMember {
                member: "timeoutMs",
                probes: &[Probe("-1", Refused("timeoutMs"))],
                shared: &[],
            },
        ],
    },
    RequestBounds {
        // It is the user's own and has no sandbox; the operator can forbid it.
        method: "thread/shellCommand",
        free: "clientRequestId command threadId",
        bounds: &[BoundMember {
            member: "timeoutMs",
            probes: &[Probe("-1", Refused("timeoutMs"))],
            shared: &[],
        }],
    },
];

/// Members of an older contract, or of another request: a client that sets one here would believe
/// that it applies.
pub(super) const REPLACED_MEMBERS: &[(&str, &str, &str)] = &[
    ("thread/start", "permissionProfile", "permissions"),
    ("thread/resume", "permissionProfile", "permissions"),
    ("thread/fork", "permissionProfile", "permissions"),
    ("turn/start", "permissionProfile", "permissions"),
    ("thread/settings/update", "permissionProfile", "permissions"),
    ("thread/start", "sandboxPolicy", "sandbox"),
    ("thread/resume", "sandboxPolicy", "sandbox"),
    ("thread/fork", "sandboxPolicy", "sandbox"),
    ("turn/start", "sandbox", "sandboxPolicy"),
    ("thread/settings/update", "sandbox", "sandboxPolicy"),
    ("command/exec", "permissions", "permissionProfile"),
    ("command/exec", "sandbox", "sandboxPolicy"),
    ("process/spawn", "sandboxPolicy", "command/exec"),
    ("process/spawn", "permissionProfile", "command/exec"),
    ("thread/shellCommand", "sandboxPolicy", "command/exec"),
    ("thread/start", "budget", "`budget.turn.tool_calls`"),
    ("thread/start", "sandbox_policy", "sandbox"),
    ("thread/start", "sandboxMode", "sandbox"),
    ("thread/start", "approval_policy", "write `approvalPolicy`"),
    ("thread/start", "permission", "permissions"),
    ("thread/start", "rules", "sandbox"),
    ("thread/start", "network_access", "sandbox"),
    ("thread/start", "unattended", "approvalPolicy"),
    ("thread/start", "shellEnvironmentPolicy", "sandbox"),
    ("thread/resume", "budget", "`budget.turn.tool_calls`"),
    ("thread/resume", "sandbox_mode", "sandbox"),
    ("thread/fork", "budget", "`budget.turn.tool_calls`"),
    ("thread/fork", "allow_login_shell", "sandbox"),
    ("turn/start", "budget", "thread/settings/update"),
    ("turn/start", "sandbox_policy", "write `sandboxPolicy`"),
    ("turn/start", "config", "sandboxPolicy"),
    ("turn/start", "networkAccess", "sandboxPolicy"),
    ("turn/steer", "sandboxPolicy", "leave it out"),
    ("thread/settings/update", "Budget", "write `budget`"),
    ("thread/settings/update", "config", "budget"),
    ("command/exec", "sandbox_policy", "write `sandboxPolicy`"),
    ("command/exec", "network_access", "sandboxPolicy"),
    ("command/exec", "timeout_ms", "write `timeoutMs`"),
    ("command/exec", "timeout", "timeoutMs"),
    ("command/exec", "maxOutputBytes", "outputBytesCap"),
    ("command/exec", "readOnly", "sandboxPolicy"),
    (
        "process/spawn",
        "output_bytes_cap",
        "write `outputBytesCap`",
    ),
    ("process/spawn", "timeout", "timeoutMs"),
    ("thread/goal/set", "token_budget", "write `tokenBudget`"),
    ("thread/shellCommand", "timeout_ms", "write `timeoutMs`"),
    ("thread/start", "readOnly", "sandbox"),
    ("thread/start", "maxTurns", "config"),
    ("thread/start", "timeoutMs", "config"),
];

/// Members that bound the same as a key of `config`: the member, its value, the key, the same value
/// of the key, and another one.
pub(super) const DUPLICATE_BOUNDS: &[[&str; 5]] = &[
    [
        "sandbox",
        "workspace-write",
        "sandbox_mode",
        "workspace-write",
        "read-only",
    ],
    [
        "sandbox",
        "read-only",
        "default_permissions",
        ":read-only",
        ":workspace",
    ],
    [
        "permissions",
        ":danger-full-access",
        "sandbox_mode",
        "danger-full-access",
        "read-only",
    ],
    [
        "permissions",
        ":read-only",
        "default_permissions",
        ":read-only",
        ":workspace",
    ],
    [
        "approvalPolicy",
        "never",
        "approval_policy",
        "never",
        "untrusted",
    ],
    [
        "approvalsReviewer",
        "user",
        "approvals_reviewer",
        "user",
        "auto_review",
    ],
];
