//! The method table: every request a client may make, declared once.

use crate::table::{Lane, Method, MethodRow, NoParams, Resource, Stability, Tier, plain_path};
use crate::*;

methods! {
    /// Introduce the connection: who is calling, and what it can handle.
    "initialize" => Initialize(InitializeParams) -> InitializeResponse,
        Core, Stable, lane(free);

    /// Begin a thread and subscribe to it.
    "thread/start" => ThreadStart(ThreadStartParams) -> ThreadStartResponse,
        Core, Stable, lane(free), keyed(client_request_id), gated ["allowProviderModelFallback", "daybreakEnabled", "dynamicTools", "environments", "experimentalRawEvents", "historyMode", "mockExperimentalField", "multiAgentMode", "permissions", "projectId", "runtimeWorkspaceRoots", "selectedCapabilityRoots"];

    /// Open a stored or running thread and subscribe to it.
    "thread/resume" => ThreadResume(ThreadResumeParams) -> ThreadResumeResponse,
        Core, Stable, lane(thread(thread_id)), gated ["history", "initialTurnsPage", "path", "permissions", "runtimeWorkspaceRoots"];

    /// Begin a thread that continues from a point of another.
    "thread/fork" => ThreadFork(ThreadForkParams) -> ThreadForkResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id), gated ["attachToSource", "beforeTurnId", "deferGoalContinuation", "experimentalDisablePredictionMcp", "experimentalPredictionMode", "path", "permissions", "runtimeWorkspaceRoots"];

    /// Put a thread out of sight without losing it.
    "thread/archive" => ThreadArchive(ThreadArchiveParams) -> ThreadArchiveResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id);

    /// Remove a thread and the threads it spawned, for good.
    "thread/delete" => ThreadDelete(ThreadDeleteParams) -> ThreadDeleteResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id);

    /// Stop hearing a thread.
    "thread/unsubscribe" => ThreadUnsubscribe(ThreadUnsubscribeParams) -> ThreadUnsubscribeResponse,
        Core, Stable, lane(thread(thread_id));

    /// Give a thread a title.
    "thread/name/set" => ThreadNameSet(ThreadSetNameParams) -> ThreadSetNameResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id);

    /// Change what is remembered beside a thread.
    "thread/metadata/update" => ThreadMetadataUpdate(ThreadMetadataUpdateParams) -> ThreadMetadataUpdateResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id), gated ["daybreakEnabled", "projectId"];

    /// Change how later turns of a thread run.
    "thread/settings/update" => ThreadSettingsUpdate(ThreadSettingsUpdateParams) -> ThreadSettingsUpdateResponse,
        Core, Experimental, lane(thread(thread_id)), keyed(client_request_id);

    /// Bring an archived thread back.
    "thread/unarchive" => ThreadUnarchive(ThreadUnarchiveParams) -> ThreadUnarchiveResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id);

    /// Summarise a thread so that its context becomes small again.
    "thread/compact/start" => ThreadCompactStart(ThreadCompactStartParams) -> ThreadCompactStartResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id);

    /// Run the user's own command in a thread.
    "thread/shellCommand" => ThreadShellCommand(ThreadShellCommandParams) -> ThreadShellCommandResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id);

    /// Go back to before a turn.
    "thread/revert" => ThreadRevert(ThreadRevertParams) -> ThreadRevertResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id);

    /// Page through threads.
    "thread/list" => ThreadList(ThreadListParams) -> ThreadListResponse,
        Core, Stable, lane(free), gated ["ancestorThreadId", "attachedToThreadId", "parentThreadId", "projectId"];

    /// List the threads that are in memory.
    "thread/loaded/list" => ThreadLoadedList(ThreadLoadedListParams) -> ThreadLoadedListResponse,
        Core, Stable, lane(free);

    /// Look at a thread without subscribing.
    "thread/read" => ThreadRead(ThreadReadParams) -> ThreadReadResponse,
        Core, Stable, lane(thread(thread_id));

    /// Page through a thread's turns.
    "thread/turns/list" => ThreadTurnsList(ThreadTurnsListParams) -> ThreadTurnsListResponse,
        Core, Stable, lane(free);

    /// Page through a thread's completed items.
    "thread/items/list" => ThreadItemsList(ThreadItemsListParams) -> ThreadItemsListResponse,
        Core, Stable, lane(free);

    /// Add raw model items to a thread's history.
    "thread/inject_items" => ThreadInjectItems(ThreadInjectItemsParams) -> ThreadInjectItemsResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id);

    /// List the skills that apply in some folders.
    "skills/list" => SkillsList(SkillsListParams) -> SkillsListResponse,
        Core, Stable, lane(free);

    /// Read a file.
    "fs/readFile" => FsReadFile(FsReadFileParams) -> FsReadFileResponse,
        Core, Stable, lane(shared path(path));

    /// Write a file, replacing it.
    "fs/writeFile" => FsWriteFile(FsWriteFileParams) -> FsWriteFileResponse,
        Core, Stable, lane(path(path));

    /// Make a folder.
    "fs/createDirectory" => FsCreateDirectory(FsCreateDirectoryParams) -> FsCreateDirectoryResponse,
        Core, Stable, lane(tree(path));

    /// Ask what a path is and when it changed.
    "fs/getMetadata" => FsGetMetadata(FsGetMetadataParams) -> FsGetMetadataResponse,
        Core, Stable, lane(shared path(path));

    /// List a folder.
    "fs/readDirectory" => FsReadDirectory(FsReadDirectoryParams) -> FsReadDirectoryResponse,
        Core, Stable, lane(shared path(path));

    /// Remove a file or a folder.
    "fs/remove" => FsRemove(FsRemoveParams) -> FsRemoveResponse,
        Core, Stable, lane(tree(path));

    /// Copy a file or a folder.
    "fs/copy" => FsCopy(FsCopyParams) -> FsCopyResponse,
        Core, Stable, lane(shared tree(source_path), tree(destination_path));

    /// Be told when a path changes.
    "fs/watch" => FsWatch(FsWatchParams) -> FsWatchResponse,
        Core, Stable, lane(watch(watch_id));

    /// End a watch.
    "fs/unwatch" => FsUnwatch(FsUnwatchParams) -> FsUnwatchResponse,
        Core, Stable, lane(watch(watch_id));

    /// Hand input to a thread; while a turn runs, it joins that turn.
    "turn/start" => TurnStart(TurnStartParams) -> TurnStartResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id), gated ["additionalContext", "collaborationMode", "cyberAccessProgram", "environments", "multiAgentMode", "permissions", "responsesapiClientMetadata", "responsesapiClientMetadataPatch", "runtimeWorkspaceRoots"];

    /// Add input to the running turn.
    "turn/steer" => TurnSteer(TurnSteerParams) -> TurnSteerResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id), gated ["additionalContext", "responsesapiClientMetadata", "responsesapiClientMetadataPatch"];

    /// End the running turn.
    "turn/interrupt" => TurnInterrupt(TurnInterruptParams) -> TurnInterruptResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id);

    /// Have the agent review changes.
    "review/start" => ReviewStart(ReviewStartParams) -> ReviewStartResponse,
        Core, Stable, lane(thread(thread_id)), keyed(client_request_id);

    /// Page through the models a turn may use.
    "model/list" => ModelList(ModelListParams) -> ModelListResponse,
        Core, Stable, lane(shared config);

    /// Run a command and wait for it.
    "command/exec" => CommandExec(CommandExecParams) -> CommandExecResponse,
        Core, Stable, lane(free), gated ["permissionProfile"];

    /// Write to a running command.
    "command/exec/write" => CommandExecWrite(CommandExecWriteParams) -> CommandExecWriteResponse,
        Core, Stable, lane(process(process_id));

    /// End a running command.
    "command/exec/terminate" => CommandExecTerminate(CommandExecTerminateParams) -> CommandExecTerminateResponse,
        Core, Stable, lane(process(process_id));

    /// Change a running command's terminal size.
    "command/exec/resize" => CommandExecResize(CommandExecResizeParams) -> CommandExecResizeResponse,
        Core, Stable, lane(process(process_id));

    /// Read the effective configuration and where each value comes from.
    "config/read" => ConfigRead(ConfigReadParams) -> ConfigReadResponse,
        Core, Stable, lane(shared config);

    /// Set one value of the user's configuration.
    "config/value/write" => ConfigValueWrite(ConfigValueWriteParams) -> ConfigWriteResponse,
        Core, Stable, lane(config);

    /// Set several values of the user's configuration at once.
    "config/batchWrite" => ConfigBatchWrite(ConfigBatchWriteParams) -> ConfigWriteResponse,
        Core, Stable, lane(config);

    /// Read what an administrator requires of the configuration.
    "configRequirements/read" => ConfigRequirementsRead -> ConfigRequirementsReadResponse,
        Core, Stable, lane(free);

    /// Ask who is signed in and whether anyone must be.
    "account/read" => AccountRead(GetAccountParams) -> GetAccountResponse,
        Core, Stable, lane(free);

    /// Find files by a few letters of their path.
    "fuzzyFileSearch" => FuzzyFileSearch(FuzzyFileSearchParams) -> FuzzyFileSearchResponse,
        Core, Stable, lane(free);

    /// Read the server's own gauges.
    "server/diagnostics" => ServerDiagnostics(ServerDiagnosticsParams) -> ServerDiagnosticsResponse,
        Useful, Experimental, lane(free);

    /// Set or change a thread's goal.
    "thread/goal/set" => ThreadGoalSet(ThreadGoalSetParams) -> ThreadGoalSetResponse,
        Useful, Stable, lane(thread(thread_id)), keyed(client_request_id);

    /// Read a thread's goal.
    "thread/goal/get" => ThreadGoalGet(ThreadGoalGetParams) -> ThreadGoalGetResponse,
        Useful, Stable, lane(thread(thread_id));

    /// Drop a thread's goal.
    "thread/goal/clear" => ThreadGoalClear(ThreadGoalClearParams) -> ThreadGoalClearResponse,
        Useful, Stable, lane(thread(thread_id)), keyed(client_request_id);

    /// Queue input for after the running turn.
    "thread/queue/add" => ThreadQueueAdd(ThreadQueueAddParams) -> ThreadQueueAddResponse,
        Useful, Experimental, lane(thread(thread_id)), keyed(client_request_id);

    /// Page through queued input.
    "thread/queue/list" => ThreadQueueList(ThreadQueueListParams) -> ThreadQueueListResponse,
        Useful, Experimental, lane(thread(thread_id));

    /// Change queued input.
    "thread/queue/update" => ThreadQueueUpdate(ThreadQueueUpdateParams) -> ThreadQueueUpdateResponse,
        Useful, Experimental, lane(thread(thread_id)), keyed(client_request_id);

    /// Drop queued input.
    "thread/queue/delete" => ThreadQueueDelete(ThreadQueueDeleteParams) -> ThreadQueueDeleteResponse,
        Useful, Experimental, lane(thread(thread_id)), keyed(client_request_id);

    /// Put queued input in another order.
    "thread/queue/reorder" => ThreadQueueReorder(ThreadQueueReorderParams) -> ThreadQueueReorderResponse,
        Useful, Experimental, lane(thread(thread_id)), keyed(client_request_id);

    /// Start a turn with queued input now.
    "thread/queue/start" => ThreadQueueStart(ThreadQueueStartParams) -> ThreadQueueStartResponse,
        Useful, Experimental, lane(thread(thread_id)), keyed(client_request_id);

    /// End every background terminal of a thread.
    "thread/backgroundTerminals/clean" => ThreadBackgroundTerminalsClean(ThreadBackgroundTerminalsCleanParams) -> ThreadBackgroundTerminalsCleanResponse,
        Useful, Experimental, lane(thread(thread_id));

    /// Page through a thread's background terminals.
    "thread/backgroundTerminals/list" => ThreadBackgroundTerminalsList(ThreadBackgroundTerminalsListParams) -> ThreadBackgroundTerminalsListResponse,
        Useful, Experimental, lane(thread(thread_id));

    /// End one background terminal.
    "thread/backgroundTerminals/terminate" => ThreadBackgroundTerminalsTerminate(ThreadBackgroundTerminalsTerminateParams) -> ThreadBackgroundTerminalsTerminateResponse,
        Useful, Experimental, lane(thread(thread_id));

    /// Page through the sections a client groups threads in.
    "threadSection/list" => ThreadSectionList(ThreadSectionListParams) -> ThreadSectionListResponse,
        Useful, Stable, lane(free);

    /// Find threads by text.
    "thread/search" => ThreadSearch(ThreadSearchParams) -> ThreadSearchResponse,
        Useful, Experimental, lane(free);

    /// Read items by id.
    "thread/items/read" => ThreadItemsRead(ThreadItemsReadParams) -> ThreadItemsReadResponse,
        Useful, Experimental, lane(free);

    /// Name more folders to look for skills in.
    "skills/extraRoots/set" => SkillsExtraRootsSet(SkillsExtraRootsSetParams) -> SkillsExtraRootsSetResponse,
        Useful, Stable, lane(config);

    /// List the hooks that apply in some folders.
    "hooks/list" => HooksList(HooksListParams) -> HooksListResponse,
        Useful, Stable, lane(shared config);

    /// Turn a skill on or off.
    "skills/config/write" => SkillsConfigWrite(SkillsConfigWriteParams) -> SkillsConfigWriteResponse,
        Useful, Stable, lane(config);

    /// Change how the running turn goes on.
    "turn/settings/update" => TurnSettingsUpdate(TurnSettingsUpdateParams) -> TurnSettingsUpdateResponse,
        Useful, Experimental, lane(thread(thread_id));

    /// Ask what the model provider can do.
    "modelProvider/capabilities/read" => ModelProviderCapabilitiesRead(ModelProviderCapabilitiesReadParams) -> ModelProviderCapabilitiesReadResponse,
        Useful, Stable, lane(free);

    /// Page through switchable features.
    "experimentalFeature/list" => ExperimentalFeatureList(ExperimentalFeatureListParams) -> ExperimentalFeatureListResponse,
        Useful, Stable, lane(free);

    /// Page through named permission profiles.
    "permissionProfile/list" => PermissionProfileList(PermissionProfileListParams) -> PermissionProfileListResponse,
        Useful, Stable, lane(shared config);

    /// List the modes of working together.
    "collaborationMode/list" => CollaborationModeList(CollaborationModeListParams) -> CollaborationModeListResponse,
        Useful, Experimental, lane(free);

    /// Sign in to an MCP server.
    "mcpServer/oauth/login" => McpServerOauthLogin(McpServerOauthLoginParams) -> McpServerOauthLoginResponse,
        Useful, Stable, lane(free);

    /// Read the MCP servers' configuration again.
    "config/mcpServer/reload" => ConfigMcpServerReload -> McpServerRefreshResponse,
        Useful, Stable, lane(config);

    /// Page through MCP servers and their tools.
    "mcpServerStatus/list" => McpServerStatusList(ListMcpServerStatusParams) -> ListMcpServerStatusResponse,
        Useful, Stable, lane(free);

    /// Read a resource of an MCP server.
    "mcpServer/resource/read" => McpServerResourceRead(McpResourceReadParams) -> McpResourceReadResponse,
        Useful, Stable, lane(free);

    /// Call a tool of an MCP server.
    "mcpServer/tool/call" => McpServerToolCall(McpServerToolCallParams) -> McpServerToolCallResponse,
        Useful, Stable, lane(thread(thread_id));

    /// Sign in.
    "account/login/start" => AccountLoginStart(LoginAccountParams) -> LoginAccountResponse,
        Useful, Stable, lane(account);

    /// Give up a sign-in that is under way.
    "account/login/cancel" => AccountLoginCancel(CancelLoginAccountParams) -> CancelLoginAccountResponse,
        Useful, Stable, lane(account);

    /// Sign out.
    "account/logout" => AccountLogout -> LogoutAccountResponse,
        Useful, Stable, lane(account);

    /// Start a process outside any thread.
    "process/spawn" => ProcessSpawn(ProcessSpawnParams) -> ProcessSpawnResponse,
        Useful, Experimental, lane(process(process_handle));

    /// Write to a process.
    "process/writeStdin" => ProcessWriteStdin(ProcessWriteStdinParams) -> ProcessWriteStdinResponse,
        Useful, Experimental, lane(process(process_handle));

    /// End a process.
    "process/kill" => ProcessKill(ProcessKillParams) -> ProcessKillResponse,
        Useful, Experimental, lane(process(process_handle));

    /// Change a process's terminal size.
    "process/resizePty" => ProcessResizePty(ProcessResizePtyParams) -> ProcessResizePtyResponse,
        Useful, Experimental, lane(process(process_handle));

    /// Begin a search that follows the user's typing.
    "fuzzyFileSearch/sessionStart" => FuzzyFileSearchSessionStart(FuzzyFileSearchSessionStartParams) -> FuzzyFileSearchSessionStartResponse,
        Useful, Experimental, lane(search(session_id));

    /// Give a search its newest text.
    "fuzzyFileSearch/sessionUpdate" => FuzzyFileSearchSessionUpdate(FuzzyFileSearchSessionUpdateParams) -> FuzzyFileSearchSessionUpdateResponse,
        Useful, Experimental, lane(search(session_id));

    /// End a search.
    "fuzzyFileSearch/sessionStop" => FuzzyFileSearchSessionStop(FuzzyFileSearchSessionStopParams) -> FuzzyFileSearchSessionStopResponse,
        Useful, Experimental, lane(search(session_id));
}
