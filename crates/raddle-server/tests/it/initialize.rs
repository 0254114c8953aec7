//! `initialize`

#[tokio::test]
async fn conversation() {
    crate::client::play("initialize").await;
}

#[tokio::test]
async fn each_connection_needs_its_own_initialize() {
    use raddle_rpc::{ConnectionLimits, memory};

    let harness = crate::player::Harness::new();
    let mut server = harness.open();
    let _first = crate::client::TestClient::connect(&mut server).await;
    let (mut second, server_side) = memory(ConnectionLimits::default());
    server.serve(server_side);
    second
        .outgoing
        .send(r#"{"id":1,"method":"account/read","params":{}}"#.into());
    let Some(raddle_rpc::Frame::Message(answer)) = second.incoming.next().await else {
        panic!("an answer");
    };
    assert_eq!(
        &answer[..],
        br#"{"id":1,"error":{"code":-32600,"message":"Not initialized"}}"#
    );
}

#[tokio::test]
async fn current_problems_of_the_configuration_are_reported() {
    let harness = crate::player::Harness::new();
    let mut server = harness.open();
    for (text, summary) in [
        ("model = 7\n", "`model` must be a string"),
        ("model = \n", "config.toml is not valid TOML"),
    ] {
        std::fs::write(harness.config(), text).unwrap();
        let mut client = crate::client::TestClient::connect(&mut server).await;
        let notification = client.next().await;
        assert_eq!(notification["method"], "configWarning", "{notification}");
        let shown_summary = notification["params"]["summary"].as_str().unwrap();
        assert!(shown_summary.contains(summary), "{shown_summary}");
    }
}

#[tokio::test]
async fn the_reported_home_exists() {
    use std::os::unix::fs::PermissionsExt;

    let harness = crate::player::Harness::new();
    let mut options = harness.options();
    options.paths.home = harness.home.join("not/yet");
    let home = options.paths.home.clone();
    let mut server =
        raddle_server::Server::open(options, crate::script::threads(&[])).expect("a server");
    let _client = crate::client::TestClient::connect(&mut server).await;
    let mode = std::fs::metadata(home).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
