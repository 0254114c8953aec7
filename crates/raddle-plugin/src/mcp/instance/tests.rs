//! Calls of an instance, and its stop while idle.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;

use raddle_config::{McpApproval, McpOauth, McpTransport};

use super::super::fake_server::FakeServer;
use super::*;

/// Rounds of two threads: one stops the instance, and one adds a call.
const ROUNDS: usize = 2000;

fn server() -> McpServer {
    McpServer {
        name: "s".to_owned(),
        transport: McpTransport::Stdio {
            command: "s".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            env_vars: Vec::new(),
            cwd: None,
        },
        enabled: true,
        required: false,
        startup_timeout: Duration::ZERO,
        tool_timeout: Duration::ZERO,
        enabled_tools: None,
        disabled_tools: Vec::new(),
        approval: McpApproval::Auto,
        tool_approvals: BTreeMap::new(),
        network: false,
        sandbox: true,
        oauth: McpOauth::default(),
        plugin: None,
    }
}

#[tokio::test]
async fn an_idle_stop_and_a_call_exclude_each_other() {
    let handler = Handler {
        server: "s".into(),
        calls: Arc::default(),
        elicitations: Elicitations::new("s".to_owned()),
        tools_changed: Arc::default(),
        log: Arc::default(),
        output: None,
    };
    let (service, _server) = FakeServer::connect(handler).await;
    let session = Arc::new(Session {
        peer: service.peer().clone(),
        tools: ToolTable::default(),
        info: None,
        has_resources: false,
    });
    let server = Arc::new(server());
    for _ in 0..ROUNDS {
        let mut instance = Instance::new(server.clone(), Arc::default());
        instance.state = watch::Sender::new(InstanceState::Ready(session.clone()));
        instance.last_used = Mutex::new(Instant::now() - IDLE_MAX - Duration::from_secs(1));
        let barrier = Barrier::new(2);
        let (is_stopped, call) = thread::scope(|scope| {
            let calling = scope.spawn(|| {
                barrier.wait();
                instance.open_call(None)
            });
            barrier.wait();
            let is_stopped = instance.stop_if_idle();
            (is_stopped, calling.join().expect("a thread"))
        });
        assert_eq!(is_stopped, call.is_none());
    }
}
