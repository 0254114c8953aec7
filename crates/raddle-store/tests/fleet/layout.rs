//! The layout of the tables: made once, and refused by older versions.

use raddle_core::Class;
use raddle_core::Seq;
use raddle_core::ports::{AppendError, Blobs, Journal, Pages, ReadError};
use raddle_store::{FleetJournal, FleetOptions};
use store_suite::records::{ThreadScript, renamed};

use crate::maker::{open, options};
use crate::proxy::Proxy;
use crate::server;

#[tokio::test]
async fn several_nodes_start_on_an_empty_database() {
    let options = options(server::shared());
    let journals = tokio::join!(
        open(&options),
        open(&options),
        open(&options),
        open(&options)
    );
    let mut script = ThreadScript::new();
    script.start(&journals.0, "/w").await;
    assert_eq!(journals.3.head(script.thread).await, Ok(script.head));
}

#[tokio::test]
async fn a_newer_layout_is_refused() {
    let address = server::shared();
    let proxy = Proxy::start(server::port(address)).await;
    let options = options(&proxy.address(address));
    let journal = open(&options).await;
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    let layout = |version| format!("UPDATE {}.layout SET version = {version}", options.schema);
    server::sql(layout(99)).await;
    let refused = FleetJournal::open(&options).await;
    assert!(matches!(refused, Err(ReadError::Newer(_))), "{refused:?}");
    // A node that runs meanwhile notices it with its next connections.
    proxy.refuse();
    proxy.pass();
    let put = journal.put(script.thread, vec![1], "a/b".to_owned()).await;
    assert!(put.is_err());
    let after = script.head;
    let records = script.clone().records(vec![renamed("next")]);
    let refused = journal.append(script.thread, after, &records, Class::Power);
    let refused = refused.await;
    assert!(matches!(refused, Err(AppendError::Newer(_))), "{refused:?}");
    server::sql(layout(1)).await;
    let journal = open(&options).await;
    let taken = journal.take(script.thread, Some("one")).await;
    assert_eq!(taken, Ok(script.head));
    script.append(&journal, vec![renamed("next")]).await;
}

#[tokio::test]
async fn damage_is_noticed() {
    let options = options(server::shared());
    let journal = open(&options).await;
    for damage in [
        "UPDATE records SET body = '{\"deleted\":{}}' WHERE seq = 3",
        "UPDATE records SET at = at + 1 WHERE seq = 4",
        "DELETE FROM records WHERE seq = 3",
        "DELETE FROM records WHERE seq = 5",
    ] {
        let mut script = ThreadScript::new();
        script.start(&journal, "/w").await;
        for name in ["a", "b", "c"] {
            script.append(&journal, vec![renamed(name)]).await;
        }
        let only = format!(
            "SET search_path = {}; {damage} AND log = (SELECT log FROM threads WHERE id = '{}')",
            options.schema,
            script.thread.as_uuid()
        );
        server::sql(only).await;
        let read = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
        assert!(matches!(read, Err(ReadError::Corrupt { .. })), "{read:?}");
    }
}

#[tokio::test]
async fn an_invalid_address_or_schema_is_refused() {
    let refused = [
        FleetOptions::new("postgres://[secret"),
        FleetOptions {
            schema: "a; DROP TABLE b".to_owned(),
            ..FleetOptions::new("postgres://localhost/raddle")
        },
    ];
    for options in refused {
        let result = FleetJournal::open(&options).await;
        let Err(ReadError::Unusable(what)) = result else {
            panic!("{result:?}");
        };
        assert!(!what.contains("secret"), "{what}");
        assert!(!format!("{options:?}").contains("secret"));
    }
}

/// Text may contain NUL characters, which PostgreSQL cannot store as text.
#[tokio::test]
async fn nul_characters_come_back() {
    let journal = open(&options(server::shared())).await;
    let mut script = ThreadScript::new();
    script.start(&journal, "/with\0nul").await;
    let turn = "t\0";
    let mut appended = script
        .append(&journal, store_suite::records::begin_turn(turn, "a\0b"))
        .await;
    let bodies = vec![
        store_suite::records::item_started(turn, "i\0"),
        store_suite::records::delta("i\0", 0, "x\0y"),
    ];
    appended.extend(script.append(&journal, bodies).await);
    let read = journal.read(script.thread, Seq(2), usize::MAX).await;
    assert_eq!(read.as_ref(), Ok(&appended));
    let query = raddle_core::ports::ListQuery {
        cwds: vec!["/with\0nul".to_owned()],
        limit: 10,
        ..Default::default()
    };
    let page = journal.list(query).await.unwrap();
    assert_eq!(page.entries[0].cwd, "/with\0nul");
    assert_eq!(page.entries[0].preview, "a\0b");
    script
        .append(
            &journal,
            vec![store_suite::records::completed(turn, "i\0", "x\0y")],
        )
        .await;
    let stale = journal
        .append(script.thread, Seq(1), &appended, Class::Power)
        .await;
    assert_eq!(stale, Err(AppendError::Conflict));
}
