//! More at once than one connection may have: the surplus is refused with a hint, nobody else is.

use serde_json::json;

use crate::client::{Client, Pipe, base64, id_of};
use crate::player::Stage;

#[tokio::test]
async fn the_surplus_is_refused_and_everything_is_answered_once() {
    let stage = Stage::new();
    let mut server = raddle_server::Server::open(raddle_server::Options {
        requests_max: 2,
        ..stage.options()
    })
    .expect("a server");
    let mut busy = Client::connect(&mut server).await;
    let mut other = Client::connect(&mut server).await;

    let pipes = ["a", "b"].map(|name| Pipe::new(stage.path(name)));
    let running =
        ["a", "b"].map(|name| busy.request("fs/readFile", json!({"path": stage.path(name)})));
    for _ in 0..20 {
        let refused = busy.ask("account/read", json!({})).await;
        let expected = json!({
            "code": -32001,
            "message": "Server overloaded; retry later.",
            "data": {"errorInfo": "server_overloaded", "retryAfterMs": 100},
        });
        assert_eq!(refused, Err(expected));
    }
    for _ in 0..20 {
        other
            .ask("account/read", json!({}))
            .await
            .expect("the other is served meanwhile");
    }

    // Each answer makes room for one more request.
    for (pipe, id) in pipes.iter().zip(running) {
        let mut writer = pipe.open().await;
        std::io::Write::write_all(&mut writer, b"done").unwrap();
        drop(writer);
        let answer = json!({"id": id, "result": {"dataBase64": base64("done")}});
        assert_eq!(busy.next().await, answer);
        busy.ask("account/read", json!({}))
            .await
            .expect("room again");
    }
}

#[tokio::test]
async fn a_refused_request_may_be_sent_again_under_its_id() {
    let stage = Stage::new();
    let mut server = raddle_server::Server::open(raddle_server::Options {
        requests_max: 1,
        ..stage.options()
    })
    .expect("a server");
    let mut client = Client::connect(&mut server).await;
    let pipe = Pipe::new(stage.path("a"));
    let running = client.request("fs/readFile", json!({"path": stage.path("a")}));
    let again = json!({"id": 99, "method": "account/read", "params": {}});
    client.send(&again);
    assert_eq!(client.next().await["error"]["code"], -32001);
    drop(pipe.open().await);
    assert_eq!(id_of(&client.next().await), running);
    client.send(&again);
    assert!(client.next().await["result"].is_object());
}
