//! `raddle mcp add`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use raddle_config::Configuration;
use serde_json::{Map, Value};

use super::{report, report_overridden};
use crate::cli::McpAdd;
use crate::config;

pub(super) fn run(config: &Configuration, args: &McpAdd) -> Result<ExitCode> {
    let name = &args.name;
    let is_new = !config.is_users_mcp_server(name);
    let written = config.set_mcp_server(name, section(args)?);
    let written = written.map_err(|error| config::not_written(config, error))?;
    let file = &written.file;
    report(&match is_new {
        true => format!("added the MCP server `{name}` to {file}"),
        false => format!("replaced the MCP server `{name}` in {file}"),
    });
    report_overridden(&written);
    if args.oauth_client_id.is_some() {
        report(
            "the redirect URL of the OAuth client is http://127.0.0.1/callback, on any port; \
             `oauth.callback_url` and `oauth.callback_port` set another one",
        );
    }
    // Other layers may define a part of the same server.
    let problems = config.mcp_servers().problems;
    if let Some(problem) = problems.iter().find(|it| it.name == *name) {
        report(&format!("warning: {problem}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the server as a section of the configuration.
fn section(args: &McpAdd) -> Result<Value> {
    let mut section = Map::new();
    match (&args.url, args.command.split_first()) {
        (Some(url), _) => {
            section.insert("url".to_owned(), url.as_str().into());
            if let Some(variable) = &args.bearer_token_env_var {
                section.insert("bearer_token_env_var".to_owned(), variable.as_str().into());
            }
            if let Some(resource) = &args.oauth_resource {
                section.insert("oauth_resource".to_owned(), resource.as_str().into());
            }
            if let Some(id) = &args.oauth_client_id {
                let mut client = Map::new();
                client.insert("client_id".to_owned(), id.as_str().into());
                if let Some(secret) = &args.oauth_client_secret {
                    client.insert("client_secret".to_owned(), secret.as_str().into());
                }
                section.insert("oauth".to_owned(), Value::Object(client));
            }
        }
        (None, Some((program, arguments))) => {
            section.insert("command".to_owned(), program.as_str().into());
            if !arguments.is_empty() {
                section.insert("args".to_owned(), arguments.into());
            }
            if let Some(cwd) = &args.cwd {
                section.insert("cwd".to_owned(), cwd.as_str().into());
            }
            if !args.env.is_empty() {
                let variables = args.env.iter();
                let variables = variables.map(|it| (it.name.clone(), it.value.as_str().into()));
                section.insert("env".to_owned(), Value::Object(variables.collect()));
            }
        }
        (None, None) => bail!("name a program after `--`, or an address with --url"),
    }
    Ok(Value::Object(section))
}
