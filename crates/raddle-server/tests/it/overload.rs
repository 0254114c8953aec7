//! More at once than one connection may have: the surplus is refused with a hint, nobody else is.

use serde_json::json;

use crate::client::{Client, Slow, is_slow_answer};
use crate::player::Stage;

#[tokio::test]
async fn the_surplus_is_refused_and_everything_is_answered_once() {
    let stage = Stage::new();
    let mut server = raddle_server::Server::open(
        raddle_server::Options {
            requests_max: 3,
            ..stage.options()
        },
        crate::script::threads(&[]),
    )
    .expect("a server");
    let mut busy = Client::connect(&mut server).await;
    let mut other = Client::connect(&mut server).await;

    let slow = Slow::new(&stage);
    let running = [
        slow.request(&mut busy).await,
        slow.request(&mut busy).await,
        busy.request("config/read", json!({})),
    ];
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
    drop(slow);
    for id in &running[..2] {
        assert!(is_slow_answer(&busy.next().await, *id));
    }
    assert_eq!(busy.next().await["id"], running[2]);
    busy.ask("account/read", json!({}))
        .await
        .expect("room again");
}

#[tokio::test]
async fn a_refused_request_may_be_sent_again_under_its_id() {
    let stage = Stage::new();
    let mut server = raddle_server::Server::open(
        raddle_server::Options {
            requests_max: 2,
            ..stage.options()
        },
        crate::script::threads(&[]),
    )
    .expect("a server");
    let mut client = Client::connect(&mut server).await;
    let slow = Slow::new(&stage);
    let running = slow.request(&mut client).await;
    let read = client.request("config/read", json!({}));
    let again = json!({"id": 99, "method": "account/read", "params": {}});
    client.send(&again);
    assert_eq!(client.next().await["error"]["code"], -32001);
    drop(slow);
    assert!(is_slow_answer(&client.next().await, running));
    assert_eq!(client.next().await["id"], read);
    client.send(&again);
    assert!(client.next().await["result"].is_object());
}
