//! The notification table: every notification that the server may send, declared once.

use crate::table::{NotificationRow, Scope, Stability, Tier};
use crate::*;

notifications! {
    /// A thread was started or forked.
    "thread/started" => ThreadStarted(ThreadStartedNotification), Core, Stable, Everyone;

    /// The status of a thread changed.
    "thread/status/changed" => ThreadStatusChanged(ThreadStatusChangedNotification), Core, Stable, Everyone;

    /// A thread was archived.
    "thread/archived" => ThreadArchived(ThreadArchivedNotification), Core, Stable, Everyone;

    /// An archived thread was restored.
    "thread/unarchived" => ThreadUnarchived(ThreadUnarchivedNotification), Core, Stable, Everyone;

    /// A thread was deleted.
    "thread/deleted" => ThreadDeleted(ThreadDeletedNotification), Core, Stable, Everyone;

    /// A thread was unloaded from memory.
    "thread/closed" => ThreadClosed(ThreadClosedNotification), Core, Stable, Everyone;

    /// The name of a thread changed.
    "thread/name/updated" => ThreadNameUpdated(ThreadNameUpdatedNotification), Core, Stable, Everyone;

    /// Token usage of a thread after a model call.
    "thread/tokenUsage/updated" => ThreadTokenUsageUpdated(ThreadTokenUsageUpdatedNotification), Core, Stable, Subscribers;

    /// The newest turns of a thread were dropped.
    "thread/reverted" => ThreadReverted(ThreadRevertedNotification), Core, Stable, Subscribers;

    /// The settings of a thread's later turns changed.
    "thread/settings/updated" => ThreadSettingsUpdated(ThreadSettingsUpdatedNotification), Core, Experimental, Subscribers;

    /// A thread's goal was set or changed.
    "thread/goal/updated" => ThreadGoalUpdated(ThreadGoalUpdatedNotification), Useful, Stable, Everyone;

    /// The goal of a thread was removed.
    "thread/goal/cleared" => ThreadGoalCleared(ThreadGoalClearedNotification), Useful, Stable, Everyone;

    /// A thread's queued input changed.
    "thread/queue/changed" => ThreadQueueChanged(ThreadQueueChangedNotification), Useful, Experimental, Subscribers;

    /// A turn has started.
    "turn/started" => TurnStarted(TurnStartedNotification), Core, Stable, Subscribers;

    /// A turn has ended; sent exactly once for each turn.
    "turn/completed" => TurnCompleted(TurnCompletedNotification), Core, Stable, Subscribers;

    /// The turn's changes to files, as one unified diff.
    "turn/diff/updated" => TurnDiffUpdated(TurnDiffUpdatedNotification), Core, Stable, Subscribers;

    /// The agent's plan for the turn changed.
    "turn/plan/updated" => TurnPlanUpdated(TurnPlanUpdatedNotification), Core, Stable, Subscribers;

    /// A running turn and the reason why it is waiting; only with the extension `raddle/progress`.
    "turn/progress" => TurnProgress(TurnProgressNotification), Useful, Stable, Subscribers;

    /// A plugin sent a notification during a call; only with the extension `raddle/plugins`.
    "plugin/event" => PluginEvent(PluginEventNotification), Useful, Stable, Subscribers;

    /// An item has started.
    "item/started" => ItemStarted(ItemStartedNotification), Core, Stable, Subscribers;

    /// An item has ended; its content is final.
    "item/completed" => ItemCompleted(ItemCompletedNotification), Core, Stable, Subscribers;

    /// More text of an agent message.
    "item/agentMessage/delta" => AgentMessageDelta(AgentMessageDeltaNotification), Core, Stable, Subscribers;

    /// A new part of a reasoning summary has started.
    "item/reasoning/summaryPartAdded" => ReasoningSummaryPartAdded(ReasoningSummaryPartAddedNotification), Core, Stable, Subscribers;

    /// More text of a reasoning summary.
    "item/reasoning/summaryTextDelta" => ReasoningSummaryTextDelta(ReasoningSummaryTextDeltaNotification), Core, Stable, Subscribers;

    /// More raw text of the model's reasoning.
    "item/reasoning/textDelta" => ReasoningTextDelta(ReasoningTextDeltaNotification), Core, Stable, Subscribers;

    /// More output of a command.
    "item/commandExecution/outputDelta" => CommandExecutionOutputDelta(CommandExecutionOutputDeltaNotification), Core, Stable, Subscribers;

    /// An MCP tool reports its progress.
    "item/mcpToolCall/progress" => McpToolCallProgress(McpToolCallProgressNotification), Core, Stable, Subscribers;

    /// More text of a proposed plan.
    "item/plan/delta" => PlanDelta(PlanDeltaNotification), Useful, Stable, Subscribers;

    /// A proposed file change was revised.
    "item/fileChange/patchUpdated" => FileChangePatchUpdated(FileChangePatchUpdatedNotification), Useful, Stable, Subscribers;

    /// More output of applying a patch.
    "item/fileChange/outputDelta" => FileChangeOutputDelta(FileChangeOutputDeltaNotification), Useful, Stable, Subscribers;

    /// The agent wrote to the stdin of a running command.
    "item/commandExecution/terminalInteraction" => TerminalInteraction(TerminalInteractionNotification), Useful, Stable, Subscribers;

    /// An error occurred in a turn.
    "error" => Error(ErrorNotification), Core, Stable, Subscribers;

    /// A warning for the user.
    "warning" => Warning(WarningNotification), Core, Stable, Subscribers;

    /// Part of the configuration is invalid.
    "configWarning" => ConfigWarning(ConfigWarningNotification), Core, Stable, Everyone;

    /// The client used a deprecated feature.
    "deprecationNotice" => DeprecationNotice(DeprecationNoticeNotification), Core, Stable, Everyone;

    /// A server request was answered or withdrawn.
    "serverRequest/resolved" => ServerRequestResolved(ServerRequestResolvedNotification), Core, Stable, Subscribers;

    /// More output of a command that the client runs.
    "command/exec/outputDelta" => CommandExecOutputDelta(CommandExecOutputDeltaNotification), Core, Stable, Caller;

    /// A watched path changed.
    "fs/changed" => FsChanged(FsChangedNotification), Core, Stable, Caller;

    /// More output of a process that the client runs.
    "process/outputDelta" => ProcessOutputDelta(ProcessOutputDeltaNotification), Useful, Experimental, Caller;

    /// A process that the client runs has ended.
    "process/exited" => ProcessExited(ProcessExitedNotification), Useful, Experimental, Caller;

    /// The startup status of an MCP server changed.
    "mcpServer/startupStatus/updated" => McpServerStatusUpdated(McpServerStatusUpdatedNotification), Useful, Stable, Everyone;

    /// A sign-in to an MCP server has ended.
    "mcpServer/oauthLogin/completed" => McpServerOauthLoginCompleted(McpServerOauthLoginCompletedNotification), Useful, Stable, Caller;

    /// The skills on disk changed.
    "skills/changed" => SkillsChanged(SkillsChangedNotification), Useful, Stable, Everyone;

    /// A hook run has started.
    "hook/started" => HookStarted(HookStartedNotification), Useful, Stable, Subscribers;

    /// A hook run has ended.
    "hook/completed" => HookCompleted(HookCompletedNotification), Useful, Stable, Subscribers;

    /// A search session has new results.
    "fuzzyFileSearch/sessionUpdated" => FuzzyFileSearchSessionUpdated(FuzzyFileSearchSessionUpdatedNotification), Useful, Stable, Caller;

    /// A search session has completed its current query.
    "fuzzyFileSearch/sessionCompleted" => FuzzyFileSearchSessionCompleted(FuzzyFileSearchSessionCompletedNotification), Useful, Stable, Caller;

    /// The sign-in method of the account changed.
    "account/updated" => AccountUpdated(AccountUpdatedNotification), Useful, Stable, Everyone;

    /// A sign-in has ended.
    "account/login/completed" => AccountLoginCompleted(AccountLoginCompletedNotification), Useful, Stable, Caller;
}
