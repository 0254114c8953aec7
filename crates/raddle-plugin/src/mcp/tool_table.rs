//! Tools of one MCP server: their definitions, and the names under which the model knows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_config::McpServer;
use raddle_core::ports::ToolSpec;
use rmcp::model::{PaginatedRequestParams, Tool};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::Value;

use super::tool_name::{model_name, rule_name};

/// Limit: tools of one MCP server; beyond it, the others are not offered, and that is logged.
const TOOLS_MAX: usize = 1000;

/// Limit: definitions of all tools of one MCP server; beyond it, the others are not offered, and
/// that is logged.
const DEFINITIONS_BYTES_MAX: usize = 2 << 20;

/// Pages of a list of tools that are requested.
const PAGES_MAX: usize = 100;

/// A tool of an MCP server.
#[derive(Debug)]
pub(crate) struct McpTool {
    /// Name of the tool on its server.
    pub(crate) name: String,
    /// Name of the tool in rules.
    pub(crate) rule_name: String,
    /// Definition as the server sent it.
    pub(crate) definition: Value,
    /// Specification for the model.
    pub(crate) spec: Arc<ToolSpec>,
    /// Whether the server declares that the tool changes nothing.
    pub(crate) is_read_only: bool,
    /// Whether the tool may destroy something or reach an open set of systems. True unless the
    /// server declares otherwise.
    pub(crate) is_risky: bool,
}

/// Tools of an MCP server that the configuration enables, by the model's name.
#[derive(Debug, Default)]
pub(crate) struct ToolTable {
    tools: BTreeMap<String, Arc<McpTool>>,
}

impl ToolTable {
    /// Requests the list of tools from a server.
    pub(crate) async fn request(
        config: &McpServer,
        peer: &Peer<RoleClient>,
    ) -> Result<Self, ServiceError> {
        let mut tools = Vec::new();
        let (mut cursor, mut bytes) = (None, 0);
        for _ in 0..PAGES_MAX {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = peer.list_tools(Some(params)).await?;
            for tool in page.tools {
                bytes += serde_json::to_vec(&tool).map_or(0, |it| it.len());
                if tools.len() == TOOLS_MAX || bytes > DEFINITIONS_BYTES_MAX {
                    let (server, count) = (&config.name, tools.len());
                    tracing::warn!(
                        server,
                        count,
                        "an MCP server has more tools than are offered"
                    );
                    return Ok(Self::of(config, tools));
                }
                tools.push(tool);
            }
            cursor = page.next_cursor.filter(|it| !it.is_empty());
            if cursor.is_none() {
                break;
            }
        }
        Ok(Self::of(config, tools))
    }

    /// Builds the table. Of two tools with the same name, the first counts.
    fn of(server: &McpServer, tools: Vec<Tool>) -> Self {
        let mut table = BTreeMap::new();
        for tool in tools.into_iter().filter(|it| is_enabled(server, &it.name)) {
            let tool = McpTool::of(&server.name, tool);
            table
                .entry(tool.spec.name.clone())
                .or_insert(Arc::new(tool));
        }
        Self { tools: table }
    }

    /// Returns all tools, in the order of their names.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<McpTool>> {
        self.tools.values()
    }

    /// Returns the tool that the model knows by this name.
    pub(crate) fn of_model_name(&self, name: &str) -> Option<&Arc<McpTool>> {
        self.tools.get(name)
    }

    /// Returns the tool that its server knows by this name.
    pub(crate) fn of_own_name(&self, name: &str) -> Option<&Arc<McpTool>> {
        self.all().find(|it| it.name == name)
    }
}

impl McpTool {
    fn of(server: &str, tool: Tool) -> Self {
        let definition = serde_json::to_value(&tool).unwrap_or_default();
        let annotations = tool.annotations.unwrap_or_default();
        let description = tool.description.map(|it| it.into_owned());
        Self {
            rule_name: rule_name(server, &tool.name),
            spec: Arc::new(ToolSpec {
                name: model_name(server, &tool.name),
                description: description.or(tool.title).unwrap_or_default(),
                schema: Value::Object((*tool.input_schema).clone()),
                freeform: None,
            }),
            name: tool.name.into_owned(),
            definition,
            is_read_only: annotations.read_only_hint == Some(true),
            is_risky: annotations.destructive_hint != Some(false)
                || annotations.open_world_hint != Some(false),
        }
    }
}

/// Whether the configuration enables a tool.
fn is_enabled(server: &McpServer, tool: &str) -> bool {
    let is_listed = |list: &[String]| list.iter().any(|it| it == tool);
    let is_chosen = server.enabled_tools.as_deref().is_none_or(is_listed);
    is_chosen && !is_listed(&server.disabled_tools)
}
