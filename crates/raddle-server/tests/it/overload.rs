//! More requests at once than one connection may have: the surplus is rejected with a hint, and
//! other clients are not affected.

use std::time::Duration;

use serde_json::json;

use crate::client::{ConfigWriteLock, TestClient, is_slow_answer};
use crate::player::Harness;

#[tokio::test]
async fn the_surplus_is_refused_and_everything_is_answered_once() {
    let harness = Harness::new();
    let mut server = raddle_server::Server::open(
        raddle_server::Options {
            requests_max: 3,
            ..harness.options()
        },
        crate::script::threads(&[]),
    )
    .expect("a server");
    let mut busy = TestClient::connect(&mut server).await;
    let mut other = TestClient::connect(&mut server).await;

    let slow = ConfigWriteLock::new(&harness);
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

    // Each response frees capacity for one more request.
    drop(slow);
    for id in &running[..2] {
        assert!(is_slow_answer(&busy.next().await, *id));
    }
    assert_eq!(busy.next().await["id"], running[2]);
    busy.ask("account/read", json!({}))
        .await
        .expect("capacity again");
}

#[tokio::test]
async fn a_refused_request_may_be_sent_again_under_its_id() {
    let harness = Harness::new();
    let mut server = raddle_server::Server::open(
        raddle_server::Options {
            requests_max: 2,
            ..harness.options()
        },
        crate::script::threads(&[]),
    )
    .expect("a server");
    let mut client = TestClient::connect(&mut server).await;
    let slow = ConfigWriteLock::new(&harness);
    let running = slow.request(&mut client).await;
    let read = client.request("config/read", json!({}));
    let retry = json!({"id": 99, "method": "account/read", "params": {}});
    client.send(&retry);
    assert_eq!(client.next().await["error"]["code"], -32001);
    drop(slow);
    assert!(is_slow_answer(&client.next().await, running));
    assert_eq!(client.next().await["id"], read);
    client.send(&retry);
    assert!(client.next().await["result"].is_object());
}

/// Opens a server with this limit for the bytes of running requests of a connection.
fn open(harness: &Harness, requests_bytes_max: usize) -> raddle_server::Server {
    let options = raddle_server::Options {
        requests_bytes_max,
        ..harness.options()
    };
    raddle_server::Server::open(options, crate::script::threads(&[])).expect("a server")
}

#[tokio::test]
async fn a_client_whose_requests_are_large_is_read_again_when_they_finish() {
    let harness = Harness::new();
    let mut server = open(&harness, 1000);
    let mut client = TestClient::connect(&mut server).await;
    let mut other = TestClient::connect(&mut server).await;
    let large = json!({"filler": "x".repeat(2000)});
    // A single request may be of any size.
    let answer = client.ask("account/read", large.clone()).await;
    answer.expect("an answer");

    let slow = ConfigWriteLock::new(&harness);
    let mut expected = vec![slow.request(&mut client).await];
    // A request within the capacity still passes; one beyond it waits, and so do all that follow.
    let answer = client.ask("account/read", json!({"filler": "x".repeat(500)}));
    answer.await.expect("an answer");
    for params in [large.clone(), json!({}), large] {
        expected.push(client.request("account/read", params));
    }
    for _ in 0..20 {
        let answer = other.ask("account/read", json!({})).await;
        answer.expect("the other is served meanwhile");
    }
    drop(slow);
    for id in expected {
        let answer = client.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        assert!(answer["result"].is_object(), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_request_without_capacity_times_out() {
    let harness = Harness::new();
    let mut server = open(&harness, 1000);
    let mut client = TestClient::connect(&mut server).await;
    let mut other = TestClient::connect(&mut server).await;
    let slow = ConfigWriteLock::new(&harness);
    let running = slow.request(&mut client).await;
    let large = client.request("account/read", json!({"filler": "x".repeat(2000)}));
    let small = client.request("account/read", json!({}));
    for _ in 0..20 {
        let answer = other.ask("account/read", json!({})).await;
        answer.expect("the other is served meanwhile");
    }
    // The clock stands still while a task runs, unless it is advanced.
    tokio::time::advance(Duration::from_secs(30)).await;
    let answer = client.next().await;
    assert_eq!(answer["id"], large);
    assert_eq!(answer["error"]["code"], -32001);
    assert_eq!(client.next().await["id"], small);
    drop(slow);
    assert!(is_slow_answer(&client.next().await, running));
}
