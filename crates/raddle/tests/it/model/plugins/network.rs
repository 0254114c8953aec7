//! The network of a plugin: the hosts of its manifest, through the proxy, and no others.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::PluginClient;

/// Starts an HTTP server on loopback that answers every request with `ok`, and returns its port.
fn start_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
            let _ = stream.write_all(response);
        }
    });
    port
}

fn fetch(plugin: &mut PluginClient, port: u16) -> Value {
    let url = format!("http://127.0.0.1:{port}/");
    let (_, item) = plugin.call("fetch", &json!({ "url": url }));
    item["result"]["structuredContent"].clone()
}

#[test]
fn a_plugin_reaches_the_hosts_that_it_is_trusted_with_until_they_are_revoked() {
    let (port, other) = (start_server(), start_server());
    let permission = format!("network:127.0.0.1:{port}");
    let tools = ["fetch", "host"];
    let mut plugin = PluginClient::with_plugin(&[&permission], &tools, &Value::Null);
    let list = plugin.raddle(&["plugin", "list"]);
    assert!(list.contains(&permission), "{list}");
    assert_eq!(fetch(&mut plugin, port), json!({ "text": "ok" }));
    let refused = fetch(&mut plugin, other);
    assert!(refused["error"].is_string(), "{refused}");
    plugin.raddle(&["plugin", "revoke", "org.example", &permission]);
    let refused = fetch(&mut plugin, port);
    assert!(refused["error"].is_string(), "{refused}");
    // The user may approve it again, and the next process has it.
    let params = json!({
        "method": "host/request_approval", "params": { "permission": permission },
    });
    plugin.begin("host", &params);
    plugin.approve(&permission);
    plugin.end();
    assert_eq!(fetch(&mut plugin, port), json!({ "text": "ok" }));
}

#[test]
fn a_plugin_without_a_permission_for_a_host_has_no_network() {
    let port = start_server();
    let mut plugin = PluginClient::with_plugin(&["workspace.read"], &["fetch"], &Value::Null);
    let refused = fetch(&mut plugin, port);
    assert!(refused["error"].is_string(), "{refused}");
}
