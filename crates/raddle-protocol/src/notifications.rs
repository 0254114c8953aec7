//! The notification table: everything the server may tell, declared once.

use crate::table::{NotificationRow, Scope, Stability, Tier};
use crate::*;

notifications! {
    /// A thread came to be, or was opened.
    "thread/started" => ThreadStarted(ThreadStartedNotification), Core, Stable, Everyone;

    /// What a thread is doing has changed.
    "thread/status/changed" => ThreadStatusChanged(ThreadStatusChangedNotification), Core, Stable, Everyone;

    /// A thread was archived.
    "thread/archived" => ThreadArchived(ThreadArchivedNotification), Core, Stable, Everyone;

    /// A thread was brought back.
    "thread/unarchived" => ThreadUnarchived(ThreadUnarchivedNotification), Core, Stable, Everyone;

    /// A thread was removed.
    "thread/deleted" => ThreadDeleted(ThreadDeletedNotification), Core, Stable, Everyone;

    /// A thread left memory.
    "thread/closed" => ThreadClosed(ThreadClosedNotification), Core, Stable, Everyone;

    /// A thread's title changed.
    "thread/name/updated" => ThreadNameUpdated(ThreadNameUpdatedNotification), Core, Stable, Everyone;

    /// A model call was counted.
    "thread/tokenUsage/updated" => ThreadTokenUsageUpdated(ThreadTokenUsageUpdatedNotification), Core, Stable, Subscribers;

    /// A thread went back to before a turn.
    "thread/reverted" => ThreadReverted(ThreadRevertedNotification), Core, Stable, Subscribers;

    /// How later turns run has changed.
    "thread/settings/updated" => ThreadSettingsUpdated(ThreadSettingsUpdatedNotification), Core, Experimental, Subscribers;

    /// A thread's goal changed.
    "thread/goal/updated" => ThreadGoalUpdated(ThreadGoalUpdatedNotification), Useful, Stable, Everyone;

    /// A thread has no goal any more.
    "thread/goal/cleared" => ThreadGoalCleared(ThreadGoalClearedNotification), Useful, Stable, Everyone;

    /// A thread's queued input changed.
    "thread/queue/changed" => ThreadQueueChanged(ThreadQueueChangedNotification), Useful, Experimental, Subscribers;

    /// A turn began.
    "turn/started" => TurnStarted(TurnStartedNotification), Core, Stable, Subscribers;

    /// A turn ended; sent exactly once for each turn.
    "turn/completed" => TurnCompleted(TurnCompletedNotification), Core, Stable, Subscribers;

    /// The turn's changes to files, as one unified diff.
    "turn/diff/updated" => TurnDiffUpdated(TurnDiffUpdatedNotification), Core, Stable, Subscribers;

    /// The agent's plan for the turn changed.
    "turn/plan/updated" => TurnPlanUpdated(TurnPlanUpdatedNotification), Core, Stable, Subscribers;

    /// A turn still runs, and waits for this; only with the extension `raddle/progress`.
    "turn/progress" => TurnProgress(TurnProgressNotification), Useful, Stable, Subscribers;

    /// An item began.
    "item/started" => ItemStarted(ItemStartedNotification), Core, Stable, Subscribers;

    /// An item ended; what it says now is final.
    "item/completed" => ItemCompleted(ItemCompletedNotification), Core, Stable, Subscribers;

    /// More text of a message.
    "item/agentMessage/delta" => AgentMessageDelta(AgentMessageDeltaNotification), Core, Stable, Subscribers;

    /// A new part of a reasoning summary began.
    "item/reasoning/summaryPartAdded" => ReasoningSummaryPartAdded(ReasoningSummaryPartAddedNotification), Core, Stable, Subscribers;

    /// More text of a reasoning summary.
    "item/reasoning/summaryTextDelta" => ReasoningSummaryTextDelta(ReasoningSummaryTextDeltaNotification), Core, Stable, Subscribers;

    /// More raw reasoning text.
    "item/reasoning/textDelta" => ReasoningTextDelta(ReasoningTextDeltaNotification), Core, Stable, Subscribers;

    /// More output of a command.
    "item/commandExecution/outputDelta" => CommandExecutionOutputDelta(CommandExecutionOutputDeltaNotification), Core, Stable, Subscribers;

    /// An MCP tool says how far it is.
    "item/mcpToolCall/progress" => McpToolCallProgress(McpToolCallProgressNotification), Core, Stable, Subscribers;

    /// More text of a plan.
    "item/plan/delta" => PlanDelta(PlanDeltaNotification), Useful, Stable, Subscribers;

    /// A file change under way now looks like this.
    "item/fileChange/patchUpdated" => FileChangePatchUpdated(FileChangePatchUpdatedNotification), Useful, Stable, Subscribers;

    /// More output of applying a patch.
    "item/fileChange/outputDelta" => FileChangeOutputDelta(FileChangeOutputDeltaNotification), Useful, Stable, Subscribers;

    /// The agent typed into a running command.
    "item/commandExecution/terminalInteraction" => TerminalInteraction(TerminalInteractionNotification), Useful, Stable, Subscribers;

    /// Something went wrong in a turn.
    "error" => Error(ErrorNotification), Core, Stable, Subscribers;

    /// Something the user should know.
    "warning" => Warning(WarningNotification), Core, Stable, Subscribers;

    /// Something is wrong with the configuration.
    "configWarning" => ConfigWarning(ConfigWarningNotification), Core, Stable, Everyone;

    /// Something the client uses will go away.
    "deprecationNotice" => DeprecationNotice(DeprecationNoticeNotification), Core, Stable, Everyone;

    /// A request of the server is settled.
    "serverRequest/resolved" => ServerRequestResolved(ServerRequestResolvedNotification), Core, Stable, Subscribers;

    /// More output of a command the client runs.
    "command/exec/outputDelta" => CommandExecOutputDelta(CommandExecOutputDeltaNotification), Core, Stable, Caller;

    /// A watched path changed.
    "fs/changed" => FsChanged(FsChangedNotification), Core, Stable, Caller;

    /// More output of a process the client runs.
    "process/outputDelta" => ProcessOutputDelta(ProcessOutputDeltaNotification), Useful, Experimental, Caller;

    /// A process the client runs has ended.
    "process/exited" => ProcessExited(ProcessExitedNotification), Useful, Experimental, Caller;

    /// An MCP server's state changed.
    "mcpServer/startupStatus/updated" => McpServerStatusUpdated(McpServerStatusUpdatedNotification), Useful, Stable, Everyone;

    /// A sign-in to an MCP server ended.
    "mcpServer/oauthLogin/completed" => McpServerOauthLoginCompleted(McpServerOauthLoginCompletedNotification), Useful, Stable, Caller;

    /// The skills on disk changed.
    "skills/changed" => SkillsChanged(SkillsChangedNotification), Useful, Stable, Everyone;

    /// A hook began.
    "hook/started" => HookStarted(HookStartedNotification), Useful, Stable, Subscribers;

    /// A hook ended.
    "hook/completed" => HookCompleted(HookCompletedNotification), Useful, Stable, Subscribers;

    /// A search has new results.
    "fuzzyFileSearch/sessionUpdated" => FuzzyFileSearchSessionUpdated(FuzzyFileSearchSessionUpdatedNotification), Useful, Stable, Caller;

    /// A search has seen every file.
    "fuzzyFileSearch/sessionCompleted" => FuzzyFileSearchSessionCompleted(FuzzyFileSearchSessionCompletedNotification), Useful, Stable, Caller;

    /// Who is signed in changed.
    "account/updated" => AccountUpdated(AccountUpdatedNotification), Useful, Stable, Everyone;

    /// A sign-in ended.
    "account/login/completed" => AccountLoginCompleted(AccountLoginCompletedNotification), Useful, Stable, Caller;
}
