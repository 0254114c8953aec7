//! Members of requests that bound what the agent or a command may do: each is honoured or refused,
//! never taken and left out.
//!
//! [`TABLE`] names every member of the requests that carry such bounds, so that a new member fails
//! `each_member_is_in_the_table` until somebody has said whether it bounds something, and how that
//! is kept.

use std::collections::BTreeSet;

use std::sync::Arc;

use raddle_agent::{Alone, FixedRules, NoTools, NoWebhook, Threads};
use raddle_core::Timestamp;
use raddle_core::policy::{Pins, Policy, SandboxKind};
use raddle_protocol::METHODS;
use raddle_protocol::export::json_schema;
use raddle_server::{Ground, Server};
use raddle_store::MemoryJournal;
use serde_json::{Value, json};

use crate::client::Client;
use crate::player::Stage;

/// A request, and what its members mean for what the agent or a command may do.
struct Request {
    method: &'static str,
    /// Members that bound nothing: they are about the model, its history, its output, or a name.
    free: &'static str,
    bounds: &'static [Bound],
}

/// A member that bounds something.
struct Bound {
    member: &'static str,
    probes: &'static [Probe],
}

/// A value for the member, as JSON, and what must come of it.
struct Probe(&'static str, Want);

enum Want {
    /// The thread's settings then show this, as JSON.
    Shows(&'static str),
    /// The request is refused, and the error names this.
    Refused(&'static str),
    /// The request is done: it asks for no bound.
    Done,
    /// The request is done; this file of the repository, in which this text stands, shows how.
    ShownBy(&'static str, &'static str),
}

use Want::{Done, Refused, ShownBy, Shows};

const HANDS: &str = "crates/raddle/tests/it/model/hands.rs";
const SETTINGS: &str = "conformance/thread/settings/update.md";
const COMMAND: &str = "conformance/command/exec.md";
const PROCESS: &str = "conformance/process/spawn.md";

const READ_ONLY: &str = r#"{"sandbox": {"type": "readOnly", "networkAccess": false},
    "activePermissionProfile": {"id": ":read-only", "extends": null}}"#;
const WORKSPACE: &str = r#"{"sandbox": {"type": "workspaceWrite", "writableRoots": [], "networkAccess": false},
    "activePermissionProfile": {"id": ":workspace", "extends": null}}"#;
const MINE: &str = r#"{"sandbox": {"type": "readOnly", "networkAccess": true},
    "activePermissionProfile": {"id": "mine", "extends": ":read-only"}}"#;

const PERMISSIONS: Bound = Bound {
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
};

/// What the configuration of these tests says.
const CONFIGURED: &str =
    r#"{"sandbox": {"type": "workspaceWrite"}, "activePermissionProfile": null}"#;

const APPROVAL: Bound = Bound {
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
};

const REVIEWER: Bound = Bound {
    member: "approvalsReviewer",
    probes: &[
        Probe(
            r#""auto_review""#,
            Shows(r#"{"approvalsReviewer": "auto_review"}"#),
        ),
        Probe(r#""user""#, Shows(r#"{"approvalsReviewer": "user"}"#)),
        Probe(r#""nobody""#, Refused("approvalsReviewer")),
    ],
};

const CWD: Bound = Bound {
    member: "cwd",
    probes: &[Probe(r#""/usr""#, Shows(r#"{"cwd": "/usr"}"#))],
};

const ROOTS: Bound = Bound {
    member: "runtimeWorkspaceRoots",
    probes: &[
        Probe(
            r#"["/usr"]"#,
            Shows(r#"{"runtimeWorkspaceRoots": ["/usr"]}"#),
        ),
        Probe("[]", Shows(r#"{"runtimeWorkspaceRoots": []}"#)),
        Probe(r#"["usr"]"#, Refused("absolute")),
    ],
};

/// A mode, as it is named when a thread is opened.
const SANDBOX: Bound = Bound {
    member: "sandbox",
    probes: &[
        Probe(
            r#""read-only""#,
            Shows(r#"{"sandbox": {"type": "readOnly"}, "activePermissionProfile": null}"#),
        ),
        Probe(r#""open""#, Refused("open")),
    ],
};

/// A policy, as it is said once a thread is there.
const SANDBOX_POLICY: Bound = Bound {
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
};

/// The request's own configuration, of a thread that is there. How far a mode goes says nothing without the mode.
const CONFIG_LATER: Bound = Bound {
    member: "config",
    probes: &[
        Probe(
            r#"{"sandbox_mode": "read-only"}"#,
            Shows(r#"{"sandbox": {"type": "readOnly"}}"#),
        ),
        Probe(r#"{"sandbox_mode": "open"}"#, Refused("sandbox_mode")),
        Probe(
            r#"{"sandbox_workspace_write.exclude_slash_tmp": true}"#,
            Refused("sandbox_workspace_write"),
        ),
        Probe(
            r#"{"sandbox_mode": "workspace-write", "sandbox_workspace_write.exclude_slash_tmp": true}"#,
            Shows(r#"{"sandbox": {"type": "workspaceWrite", "excludeSlashTmp": true}}"#),
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
        // Nobody has such a tool here.
        Probe(r#"{"tools.web_search": false}"#, Shows(CONFIGURED)),
        Probe(
            r#"{"model_reasoning_effort": "low", "mcp_servers": {}, "tool_output_token_limit": 5, "notify": []}"#,
            Shows(CONFIGURED),
        ),
        Probe(r#"{"tui.theme": "dark"}"#, Shows(CONFIGURED)),
    ],
};

/// The request's own configuration.
const CONFIG: Bound = Bound {
    member: "config",
    probes: &[
        Probe(
            r#"{"sandbox_mode": "read-only"}"#,
            Shows(r#"{"sandbox": {"type": "readOnly"}}"#),
        ),
        Probe(r#"{"sandbox_mode": "open"}"#, Refused("sandbox_mode")),
        Probe(
            r#"{"sandbox_workspace_write.exclude_slash_tmp": true}"#,
            Shows(r#"{"sandbox": {"type": "workspaceWrite", "excludeSlashTmp": true}}"#),
        ),
        Probe(
            r#"{"sandbox_workspace_write": {"exclude_slash_tmp": 1}}"#,
            Refused("exclude_slash_tmp"),
        ),
        Probe(r#"{"default_permissions": ":read-only"}"#, Shows(READ_ONLY)),
        Probe(r#"{"default_permissions": "nope"}"#, Refused("nope")),
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
            r#"{"approvals_reviewer": "nobody"}"#,
            Refused("approvals_reviewer"),
        ),
        Probe(
            r#"{"sandbox_network.allow": []}"#,
            Refused("sandbox_network"),
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
            r#"{"shell_environment_policy": {"inherit": "none"}}"#,
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
        // Nobody has such a tool here.
        Probe(r#"{"tools.web_search": false}"#, Shows(CONFIGURED)),
        Probe(
            r#"{"model_reasoning_effort": "low", "mcp_servers": {}, "tool_output_token_limit": 5, "notify": []}"#,
            Shows(CONFIGURED),
        ),
        Probe(
            r#"{"tui.theme": "dark", "features": {"x": false}}"#,
            Shows(CONFIGURED),
        ),
    ],
};

const ENVIRONMENTS: Bound = Bound {
    member: "environments",
    probes: &[
        Probe(
            "[]",
            ShownBy(HANDS, "fn without_an_environment_the_agent_has_no_tools()"),
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
};

const TABLE: &[Request] = &[
    Request {
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
        ],
    },
    Request {
        method: "thread/resume",
        free: "afterSeq baseInstructions developerInstructions excludeTurns history initialTurnsPage \
            model modelProvider path personality serviceTier threadId",
        bounds: &[
            APPROVAL,
            REVIEWER,
            CONFIG_LATER,
            CWD,
            PERMISSIONS,
            ROOTS,
            SANDBOX,
        ],
    },
    Request {
        method: "thread/fork",
        free: "attachToSource baseInstructions beforeTurnId clientRequestId deferGoalContinuation \
            developerInstructions ephemeral excludeTurns experimentalDisablePredictionMcp \
            experimentalPredictionMode lastTurnId model modelProvider path serviceTier threadId \
            threadSource",
        bounds: &[
            APPROVAL,
            REVIEWER,
            CONFIG_LATER,
            CWD,
            PERMISSIONS,
            ROOTS,
            SANDBOX,
        ],
    },
    Request {
        method: "thread/settings/update",
        // A mode is an instruction for the model; there are no plugins to switch off.
        free: "clientRequestId collaborationMode disabledPluginIds dynamicTools effort model \
            modelProvider multiAgentMode personality serviceTier summary threadId",
        bounds: &[
            APPROVAL,
            REVIEWER,
            CWD,
            PERMISSIONS,
            SANDBOX_POLICY,
            Bound {
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
            },
        ],
    },
    Request {
        method: "turn/start",
        // To ask for a programme grants nothing.
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
    Request {
        method: "command/exec",
        free: "command processId size streamStdin streamStdoutStderr tty",
        bounds: &[
            Bound {
                member: "cwd",
                probes: &[Probe(r#""usr""#, Refused("absolute"))],
            },
            Bound {
                member: "env",
                probes: &[Probe(r#"{"A": "b"}"#, ShownBy(COMMAND, r#""env": {"A""#))],
            },
            Bound {
                member: "disableOutputCap",
                probes: &[Probe("true", Done)],
            },
            Bound {
                member: "outputBytesCap",
                probes: &[Probe("5", ShownBy(COMMAND, r#""outputBytesCap": "#))],
            },
            Bound {
                member: "disableTimeout",
                probes: &[Probe("true", Done)],
            },
            Bound {
                member: "timeoutMs",
                probes: &[Probe("-1", Refused("timeoutMs"))],
            },
            Bound {
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
            },
            Bound {
                member: "sandboxPolicy",
                probes: &[
                    Probe(r#"{"type": "dangerFullAccess"}"#, Done),
                    Probe(r#"{"type": "open"}"#, Refused("sandboxPolicy")),
                    Probe(
                        r#"{"type": "readOnly", "access": {"type": "restricted"}}"#,
                        Refused("access"),
                    ),
                ],
            },
        ],
    },
    Request {
        // It has no sandbox, by the contract; the operator can forbid it.
        method: "process/spawn",
        free: "command processHandle size streamStdin streamStdoutStderr tty",
        bounds: &[
            Bound {
                member: "cwd",
                probes: &[Probe(r#""usr""#, Refused("absolute"))],
            },
            Bound {
                member: "env",
                probes: &[Probe(r#"{"A": "b"}"#, ShownBy(PROCESS, r#""env": {"A""#))],
            },
            Bound {
                member: "outputBytesCap",
                probes: &[Probe("5", ShownBy(PROCESS, r#""outputBytesCap": "#))],
            },
            Bound {
                member: "timeoutMs",
                probes: &[Probe("-1", Refused("timeoutMs"))],
            },
        ],
    },
    Request {
        // It is the user's own and has no sandbox; the operator can forbid it.
        method: "thread/shellCommand",
        free: "clientRequestId command threadId",
        bounds: &[Bound {
            member: "timeoutMs",
            probes: &[Probe("-1", Refused("timeoutMs"))],
        }],
    },
];

/// Members that the contract had, or that belong to another request: a client that says one here
/// believes to be bounded by it.
const ELSEWHERE: &[(&str, &str, &str)] = &[
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

/// The names of a request's members.
fn members(method: &str) -> BTreeSet<String> {
    let row = METHODS.iter().find(|it| it.name == method).expect(method);
    let Some(params) = row.params else {
        return BTreeSet::new();
    };
    let files = json_schema(true);
    let file = files.iter().find(|it| {
        let name = it.path.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".json") == Some(params)
    });
    let schema: Value = serde_json::from_str(&file.expect(params).text).expect("JSON");
    let members = schema["properties"].as_object();
    members
        .into_iter()
        .flat_map(|it| it.keys().cloned())
        .collect()
}

/// A member that no row mentions fails here: say whether it bounds something, and how it is kept.
#[test]
fn each_member_is_in_the_table() {
    for request in TABLE {
        let free = request.free.split_whitespace();
        let bounds = request.bounds.iter().map(|it| it.member);
        let named: Vec<String> = free.chain(bounds).map(str::to_owned).collect();
        let is_there: BTreeSet<String> = named.iter().cloned().collect();
        assert_eq!(
            is_there.len(),
            named.len(),
            "{} names one twice",
            request.method
        );
        assert_eq!(is_there, members(request.method), "{}", request.method);
        for bound in request.bounds {
            assert!(
                !bound.probes.is_empty(),
                "{} {}",
                request.method,
                bound.member
            );
        }
    }
    // A request with a member of such a name has a row.
    let bounds: BTreeSet<&str> = TABLE
        .iter()
        .flat_map(|it| it.bounds)
        .map(|it| it.member)
        // Names that many requests have for other things.
        .filter(|it| !["cwd", "config", "budget", "env"].contains(it))
        .collect();
    for row in METHODS {
        let has = members(row.name)
            .into_iter()
            .find(|it| bounds.contains(it.as_str()));
        let is_listed = TABLE.iter().any(|it| it.method == row.name)
            // It says where a turn of its thread runs, and is answered, not asked.
            || !crate::bounds::is_served(row.name);
        assert!(
            has.is_none() || is_listed,
            "{} has {has:?} and no row",
            row.name
        );
    }
}

/// Whether the server has the method, or only its words.
fn is_served(method: &str) -> bool {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/src/routes.rs");
    let page = std::fs::read_to_string(page).expect("the routes");
    page.contains(&format!("\"{method}\" =>"))
}

const CONFIG_FILE: &str = "sandbox_mode = 'workspace-write'\n\
    [permissions.mine]\nextends = ':read-only'\ndescription = 'Reads, and asks others.'\n\
    [permissions.mine.network]\nenabled = true\n";

/// The answer to a request, whatever is told before it.
async fn answer(client: &mut Client, method: &str, params: Value) -> Result<Value, Value> {
    let id = client.request(method, params);
    loop {
        let mut message = client.next().await;
        if message["id"] == id && message.get("method").is_none() {
            return match message.get_mut("result") {
                Some(result) => Ok(result.take()),
                None => Err(message["error"].take()),
            };
        }
    }
}

/// What a request lacks to be one.
fn whole(method: &str, member: &str, value: Value, thread: &Value) -> Value {
    let mut params = match method {
        "command/exec" => json!({
            "command": ["true"],
            "cwd": "/",
            "sandboxPolicy": {"type": "dangerFullAccess"},
        }),
        "process/spawn" => json!({"command": ["true"], "processHandle": "p", "cwd": "/"}),
        "thread/shellCommand" => json!({"threadId": thread, "command": "true"}),
        "thread/goal/set" => json!({"threadId": thread, "objective": "it"}),
        "thread/start" => json!({}),
        "turn/start" => json!({"threadId": thread, "input": []}),
        "turn/steer" => json!({"threadId": thread, "input": [], "expectedTurnId": thread}),
        _ => json!({"threadId": thread}),
    };
    if member == "permissionProfile"
        && let Some(params) = params.as_object_mut()
    {
        params.remove("sandboxPolicy");
    }
    params[member] = value;
    params
}

/// Whether a value has everything that is wanted.
fn has(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| has(found.get(name).unwrap_or(&Value::Null), wanted)),
        (found, wanted) => found == wanted,
    }
}

/// Does a request on a fresh server, and returns the thread's settings then.
async fn probe(method: &str, member: &str, value: Value) -> Result<Value, Value> {
    let stage = Stage::new();
    std::fs::write(stage.config(), CONFIG_FILE).expect("a configuration");
    let mut server = stage.open();
    let mut client = Client::connect_boldly(&mut server).await;
    let begun = answer(&mut client, "thread/start", json!({"cwd": stage.path("")})).await?;
    let thread = begun["thread"]["id"].clone();
    if method == "thread/resume" {
        // As the contract has it, a thread that somebody follows keeps its settings; the answer shows them.
        answer(
            &mut client,
            "thread/unsubscribe",
            json!({"threadId": thread}),
        )
        .await?;
    }
    let params = whole(method, member, value, &thread);
    let result = answer(&mut client, method, params).await?;
    match method {
        // These answer with the settings in force.
        "thread/start" | "thread/fork" | "thread/resume" => Ok(result),
        "command/exec" | "process/spawn" | "thread/shellCommand" => Ok(result),
        _ => answer(&mut client, "thread/resume", json!({"threadId": thread})).await,
    }
}

/// Whether a file of the repository has this text.
fn stands(file: &str, text: &str) -> bool {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(file)).is_ok_and(|it| it.contains(text))
}

#[tokio::test]
async fn what_bounds_is_honoured_or_refused() {
    let mut wrong = Vec::new();
    for request in TABLE {
        for Bound { member, probes } in request.bounds {
            for Probe(value, want) in *probes {
                let asked = serde_json::from_str(value).expect(value);
                let found = probe(request.method, member, asked).await;
                let is_right = match (&found, want) {
                    (Ok(found), Shows(wanted)) => {
                        has(found, &serde_json::from_str(wanted).expect(wanted))
                    }
                    (Err(error), Refused(part)) => {
                        error["code"] == -32600 && error["message"].to_string().contains(part)
                    }
                    (Ok(_), Done) => true,
                    (Ok(_), ShownBy(file, text)) => stands(file, text),
                    _ => false,
                };
                if !is_right {
                    let found = found.map(|it| {
                        json!([
                            it["sandbox"],
                            it["activePermissionProfile"],
                            it["approvalPolicy"],
                            it["approvalsReviewer"],
                            it["cwd"],
                            it["runtimeWorkspaceRoots"],
                        ])
                    });
                    wrong.push(format!("{} {member}: {value}: {found:?}", request.method));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[tokio::test]
async fn a_bound_in_a_request_that_has_none_is_refused() {
    for (method, member, instead) in ELSEWHERE {
        let refused = probe(method, member, json!(":read-only")).await;
        let error = refused.expect_err(&format!("{method} took {member}"));
        let message = error["message"].as_str().unwrap_or_default().to_owned();
        assert!(
            message.contains(member) && message.contains(instead),
            "{method}: {error}"
        );
        // What is null says nothing. There is no turn to be steered.
        if *method == "turn/steer" {
            continue;
        }
        let found = probe(method, member, Value::Null).await;
        assert!(found.is_ok(), "{method} {member}: {found:?}");
    }
}

/// As the reference does.
#[tokio::test]
async fn a_profile_and_a_sandbox_exclude_each_other() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect_boldly(&mut server).await;
    let begun = answer(&mut client, "thread/start", json!({})).await;
    let thread = begun.expect("a thread")["thread"]["id"].clone();
    let policy = json!({"type": "readOnly"});
    for (method, member, value) in [
        ("thread/start", "sandbox", json!("read-only")),
        ("thread/resume", "sandbox", json!("read-only")),
        ("thread/fork", "sandbox", json!("read-only")),
        ("thread/settings/update", "sandboxPolicy", policy.clone()),
        ("turn/start", "sandboxPolicy", policy),
    ] {
        let mut params = whole(method, member, value, &thread);
        params["permissions"] = json!(":read-only");
        let error = answer(&mut client, method, params).await.expect_err(method);
        let wanted = format!("`permissions` cannot be combined with `{member}`");
        assert_eq!(error["message"], wanted, "{method}");
    }
}

/// Threads of an operator who allows only to read.
fn only_reading(_: Ground) -> Threads {
    let pins = Pins {
        sandboxes: Some(vec![SandboxKind::ReadOnly]),
        network_off: true,
        ..Pins::default()
    };
    let policy = Policy {
        pins,
        ..Policy::default()
    };
    let memory = Arc::new(MemoryJournal::new());
    Threads::new(raddle_agent::Options {
        journal: memory.clone(),
        pages: memory.clone(),
        blobs: memory.clone(),
        memory: memory.clone(),
        memory_pages: memory.clone(),
        memory_blobs: memory,
        model: crate::script::model(&[]),
        tools: Arc::new(NoTools),
        rules: Arc::new(FixedRules(Arc::new(policy))),
        webhook: Arc::new(NoWebhook),
        clock: || Timestamp(1_700_000_000_000),
        node: "test".to_owned(),
        nodes: Arc::new(Alone),
        recovery: raddle_core::Recovery::Continue,
    })
}

/// What the operator does not allow is shown so, and cannot be chosen.
#[tokio::test]
async fn a_profile_that_the_operator_does_not_allow_is_refused() {
    let stage = Stage::new();
    std::fs::write(stage.config(), CONFIG_FILE).expect("a configuration");
    let mut server = Server::open(stage.options(), only_reading).expect("a server");
    let mut client = Client::connect_boldly(&mut server).await;
    let listed = answer(&mut client, "permissionProfile/list", json!({})).await;
    let listed = listed.expect("a list")["data"].take();
    let allowed = listed.as_array().expect("profiles").iter();
    let allowed: Vec<(String, bool)> = allowed
        .map(|it| (it["id"].as_str().unwrap().to_owned(), it["allowed"] == true))
        .collect();
    let wanted = [
        (":read-only", true),
        (":workspace", false),
        (":danger-full-access", false),
        ("mine", false),
    ];
    assert_eq!(allowed, wanted.map(|(id, may)| (id.to_owned(), may)));
    let begun = answer(
        &mut client,
        "thread/start",
        json!({"permissions": ":read-only"}),
    )
    .await;
    let thread = begun.expect("a thread")["thread"]["id"].clone();
    for method in [
        "thread/start",
        "thread/resume",
        "thread/fork",
        "thread/settings/update",
        "turn/start",
        "command/exec",
    ] {
        let member = match method {
            "command/exec" => "permissionProfile",
            _ => "permissions",
        };
        for (id, _) in allowed.iter().filter(|it| !it.1) {
            let params = whole(method, member, json!(id), &thread);
            let error = answer(&mut client, method, params).await.expect_err(id);
            let info = &error["data"]["errorInfo"];
            assert_eq!(
                info, "permission_profile_not_allowed",
                "{method} {id}: {error}"
            );
        }
    }
    let resumed = answer(&mut client, "thread/resume", json!({"threadId": thread})).await;
    let resumed = resumed.expect("the thread");
    assert!(
        has(&resumed, &serde_json::from_str(READ_ONLY).unwrap()),
        "{resumed}"
    );
}
