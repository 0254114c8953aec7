//! `initialize`

#[tokio::test]
async fn conversation() {
    crate::client::play("initialize").await;
}

#[tokio::test]
async fn clients_introduce_themselves_each_on_its_own() {
    use raddle_rpc::{ConnectionLimits, memory};

    let stage = crate::player::Stage::new();
    let mut server = stage.open();
    let _first = crate::client::TestClient::connect(&mut server).await;
    let (mut second, far) = memory(ConnectionLimits::default());
    server.serve(far);
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
async fn what_is_wrong_with_the_configuration_by_now_is_told() {
    let stage = crate::player::Stage::new();
    let mut server = stage.open();
    for (text, summary) in [
        ("model = 7\n", "`model` must be a string"),
        ("model = \n", "config.toml is not valid TOML"),
    ] {
        std::fs::write(stage.config(), text).unwrap();
        let mut client = crate::client::TestClient::connect(&mut server).await;
        let told = client.next().await;
        assert_eq!(told["method"], "configWarning", "{told}");
        let told = told["params"]["summary"].as_str().unwrap();
        assert!(told.contains(summary), "{told}");
    }
}

#[tokio::test]
async fn the_home_that_is_told_is_there() {
    use std::os::unix::fs::PermissionsExt;

    let stage = crate::player::Stage::new();
    let mut options = stage.options();
    options.paths.home = stage.home.join("not/yet");
    let home = options.paths.home.clone();
    let mut server =
        raddle_server::Server::open(options, crate::script::threads(&[])).expect("a server");
    let _client = crate::client::TestClient::connect(&mut server).await;
    let mode = std::fs::metadata(home).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
