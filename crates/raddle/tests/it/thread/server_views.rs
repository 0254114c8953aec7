//! A server's views of the threads stored in its home.

use raddle_core::Seq;
use serde_json::{Value, json};

use super::filled;
use crate::support::server::command;
use crate::support::stdio::Pipes;
use crate::support::{initialize, request};

#[test]
fn a_server_shows_what_is_stored_and_changes_nothing() {
    let (home, threads) = filled();
    let heads = threads.map(|it| home.records(it).last().map(|record| record.seq));
    let mut child = command(home.path())
        .arg("app-server")
        .spawn()
        .expect("the binary starts");
    let mut pipes = Pipes::of(&mut child);
    assert!(pipes.ask(&initialize("hello"))["result"].is_object());
    let mut id = 0;
    let mut ask = |method: &str, params: Value| {
        id += 1;
        let mut answer = pipes.ask(&request(id, method, params));
        assert_eq!(answer.get("error"), None, "{answer}");
        answer["result"].take()
    };
    let [one, two, three] = threads.map(|it| it.to_string());
    for (params, expected) in [
        (json!({"sortKey": "recency_at"}), vec![&three, &two, &one]),
        (
            json!({"sortKey": "recency_at", "cwd": ["/code/one"], "sortDirection": "asc"}),
            vec![&one, &three],
        ),
        (json!({"searchTerm": "FIRST"}), vec![&one]),
        (json!({"sourceKinds": ["exec"]}), vec![]),
    ] {
        let list = ask("thread/list", params.clone());
        let data = list["data"].as_array().expect("a page").iter();
        let ids: Vec<&str> = data.map(|it| it["id"].as_str().expect("an id")).collect();
        assert_eq!(ids, expected, "{params}");
    }
    let mut list = ask("thread/list", json!({"searchTerm": "the first"}));
    let read = ask("thread/read", json!({"threadId": one}));
    // Only the read of one thread returns the path of its file.
    let path = read["thread"]["path"].as_str().unwrap_or_default();
    assert!(path.ends_with("threads/journal.sqlite"), "{path}");
    assert_eq!(list["data"][0]["path"].take(), Value::Null);
    list["data"][0]["path"] = path.into();
    assert_eq!(read["thread"], list["data"][0]);
    assert_eq!(read["thread"]["status"], json!({"type": "notLoaded"}));
    assert_eq!(read["thread"]["name"], "the first");

    let read = ask(
        "thread/read",
        json!({"threadId": one, "includeTurns": true}),
    );
    let turns = read["thread"]["turns"].as_array().expect("turns");
    let statuses: Vec<&Value> = turns.iter().map(|turn| &turn["status"]).collect();
    assert_eq!(statuses, ["completed", "completed"]);
    let page = ask(
        "thread/turns/list",
        json!({"threadId": one, "itemsView": "full", "sortDirection": "asc"}),
    );
    assert_eq!(page["data"], read["thread"]["turns"]);
    let items = ask("thread/items/list", json!({"threadId": one}));
    let items = items["data"].as_array().expect("items");
    let listed: Vec<&Value> = items.iter().map(|entry| &entry["item"]["id"]).collect();
    let all = turns.iter().flat_map(|turn| turn["items"].as_array());
    let shown: Vec<&Value> = all.flatten().map(|item| &item["id"]).collect();
    assert_eq!(listed, shown);
    assert_eq!(ask("thread/loaded/list", json!({}))["data"], json!([]));

    pipes.close();
    assert!(child.wait().expect("it ends").success());
    let after = threads.map(|it| home.records(it).last().map(|record| record.seq));
    assert_eq!(after, heads);
    assert_ne!(heads[0], Some(Seq::ZERO));
}
