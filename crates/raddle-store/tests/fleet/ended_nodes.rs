//! Logs of nodes that ended.

use std::time::Duration;

use raddle_core::ports::Journal;
use raddle_store::FleetOptions;
use store_suite::records::{delta, owned_by, renamed};

use crate::maker::{open, options};
use crate::node_log::{BATCHES, Tables, numbers, whole, with_item};
use crate::server;

const LOGS: &str = "SELECT count(*) FROM node_logs";

const USERS: &str = "SELECT count(*) FROM threads WHERE writer IS NOT NULL";

#[tokio::test]
async fn the_log_of_a_dead_node_is_removed_and_its_text_is_not() {
    let options = options(server::shared());
    let tables = Tables::open(&options).await;
    let mut scripts = Vec::new();
    for is_sealed in [false, true] {
        let dead = open(&options).await;
        for _ in 0..3 {
            let mut script = with_item(&dead).await;
            script.append(&dead, vec![delta("i", 0, "a")]).await;
            scripts.push(script);
        }
        drop(dead);
        if is_sealed {
            tables.run("UPDATE node_logs SET sealed = true").await;
        }
    }
    assert_eq!(tables.number(LOGS).await, 2);
    let eager = FleetOptions {
        beat: Duration::from_millis(1),
        ..options.clone()
    };
    let next = open(&eager).await;
    tables.wait_for(LOGS, |count| count == 0).await;
    assert_eq!(tables.number(BATCHES).await, 0);
    assert_eq!(tables.number(USERS).await, 0);
    for script in &mut scripts {
        assert_eq!(numbers(&next, script.thread).await, whole(script));
        // The records still name the dead node.
        assert_eq!(next.take(script.thread, Some("one")).await, Ok(script.head));
        script.append(&next, vec![owned_by("two", 2)]).await;
    }
}

#[tokio::test]
async fn a_node_that_ends_removes_its_log() {
    let options = options(server::shared());
    let tables = Tables::open(&options).await;
    let journal = open(&options).await;
    journal.close().await;
    let mut script = with_item(&journal).await;
    let mut other = with_item(&journal).await;
    for at in 0..3 {
        script.append(&journal, vec![delta("i", at, "a")]).await;
    }
    other.append(&journal, vec![renamed("b")]).await;
    assert_eq!(tables.number(LOGS).await, 1);
    // The database lost a batch, which is still in memory.
    tables
        .run("DELETE FROM node_batches WHERE n = 3; UPDATE node_logs SET n = 2")
        .await;
    journal.close().await;
    for table in [LOGS, BATCHES, USERS] {
        assert_eq!(tables.number(table).await, 0);
    }
    let next = open(&options).await;
    for script in [&script, &other] {
        assert_eq!(numbers(&next, script.thread).await, whole(script));
    }
}
