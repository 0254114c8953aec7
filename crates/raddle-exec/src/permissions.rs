//! The permissions in an approval request, one line each.

use raddle_protocol::*;
use serde_json::json;

/// Describes the requested permissions.
pub(crate) fn lines(question: &RequestPermissionProfile) -> Vec<String> {
    named(question.file_system.as_ref(), question.network.as_ref())
}

/// Describes the permissions of a command beyond those of the sandbox.
pub(crate) fn of_a_command(it: &CommandExecutionRequestApprovalParams) -> Vec<String> {
    let more = it.additional_permissions.as_ref();
    let mut lines = more.map_or_else(Vec::new, |it| {
        named(it.file_system.as_ref(), it.network.as_ref())
    });
    let host = it.network_approval_context.as_ref();
    lines.extend(host.map(|it| format!("may reach {} by {}", it.host, it.protocol.as_str())));
    lines
}

fn named(
    files: Option<&AdditionalFileSystemPermissions>,
    network: Option<&AdditionalNetworkPermissions>,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(it) = files {
        let paths = |paths: &Option<Vec<String>>| paths.clone().unwrap_or_default();
        lines.extend(paths(&it.write).iter().map(|it| format!("may write {it}")));
        lines.extend(paths(&it.read).iter().map(|it| format!("may read {it}")));
        lines.extend(it.entries.iter().flatten().map(|it| {
            let path = match &it.path {
                FileSystemPath::Path(it) => it.path.clone(),
                FileSystemPath::GlobPattern(it) => it.pattern.clone(),
                other => json!(other).to_string(),
            };
            match &it.access {
                FileSystemAccessMode::Deny => format!("may not touch {path}"),
                access => format!("may {} {path}", access.as_str()),
            }
        }));
    }
    if network.and_then(|it| it.enabled) == Some(true) {
        lines.push("may use the network".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_right_has_its_line() {
        let path = |path: &str| json!({ "type": "path", "path": path });
        for (request, expected) in [
            (json!({}), &[][..]),
            (json!({ "network": { "enabled": false } }), &[]),
            (
                json!({
                    "fileSystem": { "write": ["/etc", "/opt"], "read": ["/root"] },
                    "network": { "enabled": true },
                }),
                &[
                    "may write /etc",
                    "may write /opt",
                    "may read /root",
                    "may use the network",
                ],
            ),
            (
                json!({ "fileSystem": { "entries": [
                    { "access": "write", "path": path("/srv") },
                    { "access": "read", "path": { "type": "glob_pattern", "pattern": "/a/*" } },
                    { "access": "deny", "path": path("/b") },
                    { "access": "write", "path": { "type": "special", "value": { "kind": "root" } } },
                ] } }),
                &[
                    "may write /srv",
                    "may read /a/*",
                    "may not touch /b",
                    r#"may write {"type":"special","value":{"kind":"root"}}"#,
                ],
            ),
        ] {
            let request = serde_json::from_value(request).expect("rights");
            assert_eq!(lines(&request), expected);
        }
    }
}
