//! The method table: every request that a client may send, declared once.

use crate::table::{
    Lane, Method, MethodRow, NoParams, Resource, ServedBy, Stability, Tier, plain_path,
};
use crate::*;

methods! {
    /// Initialises the connection: identifies the client and its capabilities.
    "initialize" => Initialize(InitializeParams) -> InitializeResponse,
        Core, Stable, lane(free), safe(reads);

    /// Starts a thread and subscribes the caller to it.
    "thread/start" => ThreadStart(ThreadStartParams) -> ThreadStartResponse,
        Core, Stable, lane(free), served_by(creator), idempotency_key(client_request_id), gated ["allowProviderModelFallback", "daybreakEnabled", "dynamicTools", "environments", "experimentalRawEvents", "historyMode", "mockExperimentalField", "multiAgentMode", "permissions", "projectId", "runtimeWorkspaceRoots", "selectedCapabilityRoots"];

    /// Loads a stored thread or attaches to a running one, and subscribes the caller to it.
    "thread/resume" => ThreadResume(ThreadResumeParams) -> ThreadResumeResponse,
        Core, Stable, lane(thread(thread_id)), safe(reads, repeatable), gated ["history", "initialTurnsPage", "path", "permissions", "runtimeWorkspaceRoots"];

    /// Starts a thread that continues from a point in the history of another.
    "thread/fork" => ThreadFork(ThreadForkParams) -> ThreadForkResponse,
        Core, Stable, lane(thread(thread_id)), served_by(creator), idempotency_key(client_request_id), gated ["attachToSource", "beforeTurnId", "deferGoalContinuation", "experimentalDisablePredictionMcp", "experimentalPredictionMode", "path", "permissions", "runtimeWorkspaceRoots"];

    /// Archives a thread, which hides it from ordinary lists.
    "thread/archive" => ThreadArchive(ThreadArchiveParams) -> ThreadArchiveResponse,
        Core, Stable, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Permanently deletes a thread and the threads it spawned.
    "thread/delete" => ThreadDelete(ThreadDeleteParams) -> ThreadDeleteResponse,
        Core, Stable, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Ends the subscription to a thread.
    "thread/unsubscribe" => ThreadUnsubscribe(ThreadUnsubscribeParams) -> ThreadUnsubscribeResponse,
        Core, Stable, lane(thread(thread_id)), safe(reads, repeatable), served_by(subscription);

    /// Sets the name of a thread.
    "thread/name/set" => ThreadNameSet(ThreadSetNameParams) -> ThreadSetNameResponse,
        Core, Stable, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Changes the metadata of a thread.
    "thread/metadata/update" => ThreadMetadataUpdate(ThreadMetadataUpdateParams) -> ThreadMetadataUpdateResponse,
        Core, Stable, lane(thread(thread_id)), idempotency_key(client_request_id), gated ["daybreakEnabled", "projectId"];

    /// Changes the settings of later turns of a thread.
    "thread/settings/update" => ThreadSettingsUpdate(ThreadSettingsUpdateParams) -> ThreadSettingsUpdateResponse,
        Core, Experimental, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Restores an archived thread.
    "thread/unarchive" => ThreadUnarchive(ThreadUnarchiveParams) -> ThreadUnarchiveResponse,
        Core, Stable, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Compacts the context of a thread into a summary.
    "thread/compact/start" => ThreadCompactStart(ThreadCompactStartParams) -> ThreadCompactStartResponse,
        Core, Stable, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Runs a command of the user in a thread.
    "thread/shellCommand" => ThreadShellCommand(ThreadShellCommandParams) -> ThreadShellCommandResponse,
        Core, Stable, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Drops a turn of a thread and all later ones.
    "thread/revert" => ThreadRevert(ThreadRevertParams) -> ThreadRevertResponse,
        Core, Stable, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Lists threads in pages.
    "thread/list" => ThreadList(ThreadListParams) -> ThreadListResponse,
        Core, Stable, lane(free), safe(reads, repeatable), gated ["ancestorThreadId", "attachedToThreadId", "parentThreadId", "projectId"];

    /// Lists the threads that are loaded into memory.
    "thread/loaded/list" => ThreadLoadedList(ThreadLoadedListParams) -> ThreadLoadedListResponse,
        Core, Stable, lane(free), safe(reads, repeatable);

    /// Reads a thread without subscribing to it.
    "thread/read" => ThreadRead(ThreadReadParams) -> ThreadReadResponse,
        Core, Stable, lane(thread(thread_id)), safe(reads, repeatable), served_by(any_node);

    /// Lists the turns of a thread in pages.
    "thread/turns/list" => ThreadTurnsList(ThreadTurnsListParams) -> ThreadTurnsListResponse,
        Core, Stable, lane(free), safe(reads, repeatable);

    /// Lists the completed items of a thread in pages.
    "thread/items/list" => ThreadItemsList(ThreadItemsListParams) -> ThreadItemsListResponse,
        Core, Stable, lane(free), safe(reads, repeatable);

    /// Adds raw model items to a thread's history.
    "thread/inject_items" => ThreadInjectItems(ThreadInjectItemsParams) -> ThreadInjectItemsResponse,
        Core, Stable, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Lists the skills that apply in the given directories.
    "skills/list" => SkillsList(SkillsListParams) -> SkillsListResponse,
        Core, Stable, lane(free), safe(reads, repeatable);

    /// Reads a file of the server's machine.
    "fs/readFile" => FsReadFile(FsReadFileParams) -> FsReadFileResponse,
        Core, Stable, lane(shared path(path)), safe(reads, repeatable);

    /// Writes a file, replacing its content.
    "fs/writeFile" => FsWriteFile(FsWriteFileParams) -> FsWriteFileResponse,
        Core, Stable, lane(path(path));

    /// Creates a directory.
    "fs/createDirectory" => FsCreateDirectory(FsCreateDirectoryParams) -> FsCreateDirectoryResponse,
        Core, Stable, lane(tree(path));

    /// Reads the type and times of a path.
    "fs/getMetadata" => FsGetMetadata(FsGetMetadataParams) -> FsGetMetadataResponse,
        Core, Stable, lane(shared path(path)), safe(reads, repeatable);

    /// Lists the entries of a directory.
    "fs/readDirectory" => FsReadDirectory(FsReadDirectoryParams) -> FsReadDirectoryResponse,
        Core, Stable, lane(shared path(path)), safe(reads, repeatable);

    /// Removes a file or a directory.
    "fs/remove" => FsRemove(FsRemoveParams) -> FsRemoveResponse,
        Core, Stable, lane(tree(path));

    /// Copies a file or a directory.
    "fs/copy" => FsCopy(FsCopyParams) -> FsCopyResponse,
        Core, Stable, lane(shared tree(source_path), tree(destination_path));

    /// Watches a path and sends `fs/changed` when it changes.
    "fs/watch" => FsWatch(FsWatchParams) -> FsWatchResponse,
        Core, Stable, lane(watch(watch_id)), safe(reads);

    /// Ends a watch of a path.
    "fs/unwatch" => FsUnwatch(FsUnwatchParams) -> FsUnwatchResponse,
        Core, Stable, lane(watch(watch_id)), safe(reads);

    /// Sends input to a thread; while a turn is running, the input joins that turn.
    "turn/start" => TurnStart(TurnStartParams) -> TurnStartResponse,
        Core, Stable, lane(thread(thread_id)), served_by(loaded), idempotency_key(client_request_id), gated ["additionalContext", "collaborationMode", "cyberAccessProgram", "environments", "multiAgentMode", "permissions", "responsesapiClientMetadata", "responsesapiClientMetadataPatch", "runtimeWorkspaceRoots"];

    /// Adds input to the running turn.
    "turn/steer" => TurnSteer(TurnSteerParams) -> TurnSteerResponse,
        Core, Stable, lane(thread(thread_id)), idempotency_key(client_request_id), gated ["additionalContext", "responsesapiClientMetadata", "responsesapiClientMetadataPatch"];

    /// Interrupts the running turn.
    "turn/interrupt" => TurnInterrupt(TurnInterruptParams) -> TurnInterruptResponse,
        Core, Stable, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Starts a code review by the agent.
    "review/start" => ReviewStart(ReviewStartParams) -> ReviewStartResponse,
        Core, Stable, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Lists the models a turn may use, in pages.
    "model/list" => ModelList(ModelListParams) -> ModelListResponse,
        Core, Stable, lane(shared config), safe(reads, repeatable);

    /// Runs a command and waits for its exit.
    "command/exec" => CommandExec(CommandExecParams) -> CommandExecResponse,
        Core, Stable, lane(free), gated ["permissionProfile"];

    /// Writes to the stdin of a running command.
    "command/exec/write" => CommandExecWrite(CommandExecWriteParams) -> CommandExecWriteResponse,
        Core, Stable, lane(process(process_id));

    /// Terminates a running command.
    "command/exec/terminate" => CommandExecTerminate(CommandExecTerminateParams) -> CommandExecTerminateResponse,
        Core, Stable, lane(process(process_id));

    /// Changes the terminal size of a running command.
    "command/exec/resize" => CommandExecResize(CommandExecResizeParams) -> CommandExecResizeResponse,
        Core, Stable, lane(process(process_id));

    /// Reads the effective configuration and the origin of each value.
    "config/read" => ConfigRead(ConfigReadParams) -> ConfigReadResponse,
        Core, Stable, lane(shared config), safe(reads, repeatable);

    /// Writes one value of the user's configuration.
    "config/value/write" => ConfigValueWrite(ConfigValueWriteParams) -> ConfigWriteResponse,
        Core, Stable, lane(config);

    /// Writes several values of the user's configuration at once.
    "config/batchWrite" => ConfigBatchWrite(ConfigBatchWriteParams) -> ConfigWriteResponse,
        Core, Stable, lane(config);

    /// Reads the administrator's requirements on the configuration.
    "configRequirements/read" => ConfigRequirementsRead -> ConfigRequirementsReadResponse,
        Core, Stable, lane(free), safe(reads, repeatable);

    /// Reads the signed-in account and whether a sign-in is required.
    "account/read" => AccountRead(GetAccountParams) -> GetAccountResponse,
        Core, Stable, lane(free), safe(reads, repeatable);

    /// Searches for files by a few letters of their path.
    "fuzzyFileSearch" => FuzzyFileSearch(FuzzyFileSearchParams) -> FuzzyFileSearchResponse,
        Core, Stable, lane(free), safe(reads, repeatable);

    /// Reads the server's own gauges.
    "server/diagnostics" => ServerDiagnostics(ServerDiagnosticsParams) -> ServerDiagnosticsResponse,
        Useful, Experimental, lane(free), safe(repeatable);

    /// Sets or changes a thread's goal.
    "thread/goal/set" => ThreadGoalSet(ThreadGoalSetParams) -> ThreadGoalSetResponse,
        Useful, Stable, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Reads the goal of a thread.
    "thread/goal/get" => ThreadGoalGet(ThreadGoalGetParams) -> ThreadGoalGetResponse,
        Useful, Stable, lane(thread(thread_id)), safe(reads, repeatable), served_by(any_node);

    /// Removes the goal of a thread.
    "thread/goal/clear" => ThreadGoalClear(ThreadGoalClearParams) -> ThreadGoalClearResponse,
        Useful, Stable, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Queues input for after the running turn.
    "thread/queue/add" => ThreadQueueAdd(ThreadQueueAddParams) -> ThreadQueueAddResponse,
        Useful, Experimental, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Lists queued input in pages.
    "thread/queue/list" => ThreadQueueList(ThreadQueueListParams) -> ThreadQueueListResponse,
        Useful, Experimental, lane(thread(thread_id)), safe(reads, repeatable), served_by(any_node);

    /// Replaces the input of a queued entry.
    "thread/queue/update" => ThreadQueueUpdate(ThreadQueueUpdateParams) -> ThreadQueueUpdateResponse,
        Useful, Experimental, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Removes a queued entry.
    "thread/queue/delete" => ThreadQueueDelete(ThreadQueueDeleteParams) -> ThreadQueueDeleteResponse,
        Useful, Experimental, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Changes the order of queued input.
    "thread/queue/reorder" => ThreadQueueReorder(ThreadQueueReorderParams) -> ThreadQueueReorderResponse,
        Useful, Experimental, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Starts a turn with queued input now.
    "thread/queue/start" => ThreadQueueStart(ThreadQueueStartParams) -> ThreadQueueStartResponse,
        Useful, Experimental, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Terminates all background terminals of a thread.
    "thread/backgroundTerminals/clean" => ThreadBackgroundTerminalsClean(ThreadBackgroundTerminalsCleanParams) -> ThreadBackgroundTerminalsCleanResponse,
        Useful, Experimental, lane(thread(thread_id)), served_by(subscription);

    /// Lists a thread's background terminals in pages.
    "thread/backgroundTerminals/list" => ThreadBackgroundTerminalsList(ThreadBackgroundTerminalsListParams) -> ThreadBackgroundTerminalsListResponse,
        Useful, Experimental, lane(thread(thread_id)), safe(reads, repeatable), served_by(subscription);

    /// Terminates one background terminal.
    "thread/backgroundTerminals/terminate" => ThreadBackgroundTerminalsTerminate(ThreadBackgroundTerminalsTerminateParams) -> ThreadBackgroundTerminalsTerminateResponse,
        Useful, Experimental, lane(thread(thread_id)), served_by(subscription);

    /// Lists the sections in which a client groups threads, in pages.
    "threadSection/list" => ThreadSectionList(ThreadSectionListParams) -> ThreadSectionListResponse,
        Useful, Stable, lane(free), safe(reads, repeatable);

    /// Drops the newest turns of a thread. Deprecated: use `thread/revert`.
    "thread/rollback" => ThreadRollback(ThreadRollbackParams) -> ThreadRollbackResponse,
        Useful, Stable, lane(thread(thread_id));

    /// Lists the checkpoints of a thread: the file changes of its turns.
    "thread/checkpoint/list" => ThreadCheckpointList(ThreadCheckpointListParams) -> ThreadCheckpointListResponse,
        Useful, Stable, lane(thread(thread_id)), safe(reads, repeatable);

    /// Returns which files a restore would change.
    "thread/checkpoint/preview" => ThreadCheckpointPreview(ThreadCheckpointPreviewParams) -> ThreadCheckpointPreviewResponse,
        Useful, Stable, lane(thread(thread_id)), safe(reads, repeatable);

    /// Restores the files, the conversation or both to their state before a checkpoint.
    "thread/checkpoint/restore" => ThreadCheckpointRestore(ThreadCheckpointRestoreParams) -> ThreadCheckpointRestoreResponse,
        Useful, Stable, lane(thread(thread_id)), idempotency_key(client_request_id);

    /// Reads the file changes of a turn.
    "turn/diff/read" => TurnDiffRead(TurnDiffReadParams) -> TurnDiffReadResponse,
        Useful, Stable, lane(thread(thread_id)), safe(reads, repeatable);

    /// Reads the file changes of some checkpoints together.
    "thread/diff/read" => ThreadDiffRead(ThreadDiffReadParams) -> ThreadDiffReadResponse,
        Useful, Stable, lane(thread(thread_id)), safe(reads, repeatable);

    /// Reads the changes of a thread's copy of its workspace.
    "thread/workspace/read" => ThreadWorkspaceRead(ThreadWorkspaceReadParams) -> ThreadWorkspaceReadResponse,
        Useful, Stable, lane(thread(thread_id)), safe(reads, repeatable);

    /// Applies changes of a thread's copy to the folder that was copied.
    "thread/workspace/apply" => ThreadWorkspaceApply(ThreadWorkspaceApplyParams) -> ThreadWorkspaceApplyResponse,
        Useful, Stable, lane(thread(thread_id));

    /// Searches threads by text.
    "thread/search" => ThreadSearch(ThreadSearchParams) -> ThreadSearchResponse,
        Useful, Experimental, lane(free), safe(reads, repeatable);

    /// Reads stored items by id.
    "thread/items/read" => ThreadItemsRead(ThreadItemsReadParams) -> ThreadItemsReadResponse,
        Useful, Experimental, lane(free), safe(reads, repeatable);

    /// Sets additional directories to search for skills.
    "skills/extraRoots/set" => SkillsExtraRootsSet(SkillsExtraRootsSetParams) -> SkillsExtraRootsSetResponse,
        Useful, Stable, lane(config);

    /// Lists the hooks that apply in the given directories.
    "hooks/list" => HooksList(HooksListParams) -> HooksListResponse,
        Useful, Stable, lane(shared config), safe(reads, repeatable);

    /// Lists apps in pages.
    "app/list" => AppList(AppsListParams) -> AppsListResponse,
        Useful, Stable, lane(free), safe(reads, repeatable);

    /// Lists marketplaces and their plugins.
    "plugin/list" => PluginList(PluginListParams) -> PluginListResponse,
        Useful, Stable, lane(free), safe(reads, repeatable);

    /// Lists the installed plugins.
    "plugin/installed" => PluginInstalled(PluginInstalledParams) -> PluginInstalledResponse,
        Useful, Stable, lane(free), safe(reads, repeatable);

    /// Reads the details of a plugin.
    "plugin/read" => PluginRead(PluginReadParams) -> PluginReadResponse,
        Useful, Stable, lane(free), safe(reads, repeatable);

    /// Removes an installed plugin from the user's configuration, and stops it.
    "plugin/uninstall" => PluginUninstall(PluginUninstallParams) -> PluginUninstallResponse,
        Useful, Stable, lane(config);

    /// Calls a method of a plugin; only with the extension `raddle/plugins`.
    "plugin/call" => PluginCall(PluginCallParams) -> PluginCallResponse,
        Useful, Stable, lane(free);

    /// Enables or disables a skill.
    "skills/config/write" => SkillsConfigWrite(SkillsConfigWriteParams) -> SkillsConfigWriteResponse,
        Useful, Stable, lane(config);

    /// Changes settings of the running turn.
    "turn/settings/update" => TurnSettingsUpdate(TurnSettingsUpdateParams) -> TurnSettingsUpdateResponse,
        Useful, Experimental, lane(thread(thread_id)), served_by(any_node);

    /// Reads the capabilities of the model provider.
    "modelProvider/capabilities/read" => ModelProviderCapabilitiesRead(ModelProviderCapabilitiesReadParams) -> ModelProviderCapabilitiesReadResponse,
        Useful, Stable, lane(free), safe(reads, repeatable);

    /// Lists experimental features in pages.
    "experimentalFeature/list" => ExperimentalFeatureList(ExperimentalFeatureListParams) -> ExperimentalFeatureListResponse,
        Useful, Stable, lane(free), safe(reads, repeatable);

    /// Lists named permission profiles in pages.
    "permissionProfile/list" => PermissionProfileList(PermissionProfileListParams) -> PermissionProfileListResponse,
        Useful, Stable, lane(shared config), safe(reads, repeatable);

    /// Lists the collaboration modes.
    "collaborationMode/list" => CollaborationModeList(CollaborationModeListParams) -> CollaborationModeListResponse,
        Useful, Experimental, lane(free), safe(reads, repeatable);

    /// Starts an OAuth sign-in to an MCP server.
    "mcpServer/oauth/login" => McpServerOauthLogin(McpServerOauthLoginParams) -> McpServerOauthLoginResponse,
        Useful, Stable, lane(free);

    /// Reloads the configuration of MCP servers.
    "config/mcpServer/reload" => ConfigMcpServerReload -> McpServerRefreshResponse,
        Useful, Stable, lane(config);

    /// Lists MCP servers and their tools in pages.
    "mcpServerStatus/list" => McpServerStatusList(ListMcpServerStatusParams) -> ListMcpServerStatusResponse,
        Useful, Stable, lane(free), safe(reads, repeatable);

    /// Reads a resource of an MCP server.
    "mcpServer/resource/read" => McpServerResourceRead(McpResourceReadParams) -> McpResourceReadResponse,
        Useful, Stable, lane(free), safe(repeatable);

    /// Calls a tool of an MCP server.
    "mcpServer/tool/call" => McpServerToolCall(McpServerToolCallParams) -> McpServerToolCallResponse,
        Useful, Stable, lane(thread(thread_id));

    /// Starts a sign-in to a model provider.
    "account/login/start" => AccountLoginStart(LoginAccountParams) -> LoginAccountResponse,
        Useful, Stable, lane(account);

    /// Cancels a sign-in in progress.
    "account/login/cancel" => AccountLoginCancel(CancelLoginAccountParams) -> CancelLoginAccountResponse,
        Useful, Stable, lane(account);

    /// Reads the usage limits of the account at its vendor.
    "account/rateLimits/read" => AccountRateLimitsRead -> GetAccountRateLimitsResponse,
        Useful, Stable, lane(free), safe(reads, repeatable);

    /// Signs out of the model provider.
    "account/logout" => AccountLogout -> LogoutAccountResponse,
        Useful, Stable, lane(account);

    /// Starts a process outside any thread.
    "process/spawn" => ProcessSpawn(ProcessSpawnParams) -> ProcessSpawnResponse,
        Useful, Experimental, lane(process(process_handle));

    /// Writes to the stdin of a process.
    "process/writeStdin" => ProcessWriteStdin(ProcessWriteStdinParams) -> ProcessWriteStdinResponse,
        Useful, Experimental, lane(process(process_handle));

    /// Kills a running process.
    "process/kill" => ProcessKill(ProcessKillParams) -> ProcessKillResponse,
        Useful, Experimental, lane(process(process_handle));

    /// Changes the terminal size of a process.
    "process/resizePty" => ProcessResizePty(ProcessResizePtyParams) -> ProcessResizePtyResponse,
        Useful, Experimental, lane(process(process_handle));

    /// Starts a search that follows the user's typing.
    "fuzzyFileSearch/sessionStart" => FuzzyFileSearchSessionStart(FuzzyFileSearchSessionStartParams) -> FuzzyFileSearchSessionStartResponse,
        Useful, Experimental, lane(search(session_id)), safe(reads);

    /// Changes the query of a search session.
    "fuzzyFileSearch/sessionUpdate" => FuzzyFileSearchSessionUpdate(FuzzyFileSearchSessionUpdateParams) -> FuzzyFileSearchSessionUpdateResponse,
        Useful, Experimental, lane(search(session_id)), safe(reads);

    /// Ends a search session.
    "fuzzyFileSearch/sessionStop" => FuzzyFileSearchSessionStop(FuzzyFileSearchSessionStopParams) -> FuzzyFileSearchSessionStopResponse,
        Useful, Experimental, lane(search(session_id)), safe(reads);
}
