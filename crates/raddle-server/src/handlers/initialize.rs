//! `initialize`: the client and the server exchange their names and capabilities.

use std::sync::{Arc, OnceLock};

use raddle_protocol::methods::Initialize;
use raddle_protocol::{ClientInfo, InitializeParams, InitializeResponse, RaddleInfo, extension};
use serde_json::Value;

use crate::call::Call;
use crate::services::{ServerState, processes, threads};
use crate::session::Role;
use crate::spans;
use crate::wire_error::WireError;

/// The contract version this server was checked against; stock clients read it as the server's
/// version.
pub const CONTRACT_VERSION: &str = "0.166.0";

/// Limit: a client's name; beyond it, the server rejects the request with -32600.
const NAME_BYTES_MAX: usize = 256;

/// Version of Raddle itself.
const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<Initialize>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    if !is_header_value(&params.client_info.name) {
        return reply.error(WireError::Refused(
            "clientInfo.name must be legal as an HTTP header value, of at most 256 bytes".into(),
        ));
    }
    let Some(role) = role(&params) else {
        let what = "raddle/roles takes {\"role\": \"driver\"} or {\"role\": \"observer\"}";
        return reply.error(WireError::Refused(what.into()));
    };
    if !session.introduce(&params, role) {
        return reply.error(WireError::AlreadyInitialized);
    }
    session.relay.introduce(&params);
    state
        .threads
        .subscribe_global(&threads::session_subscriber(&session));
    reply.ok(&InitializeResponse {
        user_agent: user_agent(&params.client_info),
        codex_home: state.options.paths.home.display().to_string(),
        platform_family: std::env::consts::FAMILY.to_owned(),
        platform_os: std::env::consts::OS.to_owned(),
        raddle: Some(RaddleInfo {
            version: VERSION.to_owned(),
            contract_version: CONTRACT_VERSION.to_owned(),
            extensions: extension::ALL.iter().map(|&it| it.to_owned()).collect(),
            sandbox: processes::info(&state.sandbox),
            durability: state.threads.durability().name().map(str::to_owned),
        }),
    });
    let (home, config) = (state.home.clone(), state.config.clone());
    spans::spawn(async move {
        let warnings = home.run(&session.outgoing, move || config.warnings());
        for warning in warnings.await.into_iter().flatten() {
            session.notify(&warning.into());
        }
    });
}

/// Returns the role that the client requests; none if the role is unknown.
fn role(params: &InitializeParams) -> Option<Role> {
    let capabilities = params.capabilities.as_ref();
    let extensions = capabilities.and_then(|it| it.extensions.as_ref());
    let Some(roles) = extensions.and_then(|it| it.get(extension::ROLES)) else {
        return Some(Role::Driver);
    };
    match roles.get("role").map(Value::as_str) {
        None | Some(Some("driver")) => Some(Role::Driver),
        Some(Some("observer")) => Some(Role::Observer),
        Some(_) => None,
    }
}

fn is_header_value(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

fn user_agent(client: &ClientInfo) -> String {
    let ClientInfo { name, version, .. } = client;
    let terminal = std::env::var("TERM").unwrap_or_else(|_| "unknown".to_owned());
    let arch = std::env::consts::ARCH;
    format!(
        "raddle/{CONTRACT_VERSION} ({}; {arch}) {terminal} ({name}; {version})",
        system()
    )
}

/// The system's name and version, read once.
fn system() -> &'static str {
    static SYSTEM: OnceLock<String> = OnceLock::new();
    SYSTEM.get_or_init(|| {
        let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
        let value = |key: &str| {
            release
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
                .map(|value| value.trim_matches('"').to_owned())
        };
        let name = value("NAME").unwrap_or_else(|| std::env::consts::OS.to_owned());
        format!("{name} {}", value("VERSION_ID").unwrap_or_default())
            .trim()
            .to_owned()
    })
}
