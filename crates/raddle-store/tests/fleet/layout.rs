//! The layout of the tables: made once, and refused by older versions.

use raddle_core::ports::{AppendError, Journal, ListQuery, ListScope, PageQuery, Pages, ReadError};
use raddle_core::{Base, Class, Seq, Thread};
use raddle_store::{FleetJournal, FleetOptions};
use store_suite::records::{ThreadScript, item_started, renamed};

use crate::maker::{open, options};
use crate::proxy::Proxy;
use crate::server;
use crate::sql_session::SqlSession;

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
    let taken = journal.take(script.thread, None).await;
    assert!(taken.is_err());
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
    let long = "a".repeat(64);
    let schemas = ["a; DROP TABLE b", "", "1a", "_a", "A", "ä", &long];
    let schemas = schemas.map(|schema| FleetOptions {
        schema: schema.to_owned(),
        ..FleetOptions::new("postgres://localhost/raddle")
    });
    let address = FleetOptions::new("postgres://[secret");
    for options in schemas.into_iter().chain([address]) {
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

/// A node needs no right to create what exists.
#[tokio::test]
async fn a_role_that_may_create_nothing_uses_existing_tables() {
    let address = server::shared();
    let options = options(address);
    open(&options).await;
    let (schema, role) = (&options.schema, format!("r{}", options.schema));
    for sql in [
        format!("CREATE ROLE {role} LOGIN"),
        format!("GRANT USAGE ON SCHEMA {schema} TO {role}"),
        format!("GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}"),
    ] {
        server::sql(sql).await;
    }
    let limited = FleetOptions {
        address: address.replace("user=raddle", &format!("user={role}")),
        ..options.clone()
    };
    let journal = open(&limited).await;
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    // It cannot create what is missing.
    let missing = FleetOptions {
        schema: format!("{schema}x"),
        ..limited
    };
    let refused = FleetJournal::open(&missing).await;
    assert!(
        matches!(refused, Err(ReadError::Unusable(_))),
        "{refused:?}"
    );
}

/// Returns the names of all threads.
async fn names(journal: &FleetJournal) -> Vec<Option<String>> {
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let page = journal.list(query).await.unwrap();
    page.entries.into_iter().map(|it| it.name).collect()
}

#[tokio::test]
async fn a_list_entry_that_cannot_be_read_is_left_out_and_rebuilt() {
    for damage in ["UPDATE summaries SET body = '{}'", "DELETE FROM summaries"] {
        let options = options(server::shared());
        let journal = open(&options).await;
        let session = SqlSession::open(&options.schema).await;
        let mut damaged = ThreadScript::new();
        damaged.start(&journal, "/w").await;
        damaged.append(&journal, vec![renamed("a")]).await;
        let mut intact = ThreadScript::new();
        intact.start(&journal, "/w").await;
        intact.append(&journal, vec![renamed("b")]).await;
        let id = damaged.thread.as_uuid();
        session.run(&format!("{damage} WHERE id = '{id}'")).await;
        let other = open(&options).await;
        assert_eq!(names(&other).await, [Some("b".to_owned())], "{damage}");
        let taken = other.take(damaged.thread, Some("one")).await;
        assert_eq!(taken, Ok(damaged.head), "{damage}");
        damaged.append(&other, vec![item_started("t", "i")]).await;
        let mut names = names(&other).await;
        names.sort();
        assert_eq!(names, ["a", "b"].map(|it| Some(it.to_owned())), "{damage}");
    }
}

/// After a change of the primary, records may be lost of which a base was made.
#[tokio::test]
async fn a_base_above_the_head_is_not_used() {
    let options = options(server::shared());
    let journal = open(&options).await;
    let session = SqlSession::open(&options.schema).await;
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    script.append(&journal, vec![renamed("lost")]).await;
    let mut thread = Thread::new();
    let records = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
    for record in records.unwrap() {
        thread.apply(&record);
    }
    let base = Base::of(&thread);
    let saved = journal.save_base(script.thread, base.clone()).await;
    assert_eq!(saved, Ok(()));
    let newest = journal.base(script.thread, None).await;
    assert_eq!(newest, Ok(Some(base.clone())));
    let lose = "UPDATE threads SET head = 2, tail = 2, link = records.link FROM records
                WHERE records.log = threads.log AND records.seq = 2;
                DELETE FROM records WHERE seq = 3";
    session.run(lose).await;
    assert_eq!(journal.base(script.thread, None).await, Ok(None));
    session.run("DELETE FROM bases").await;
    let other = open(&options).await;
    for journal in [&journal, &other] {
        let saved = journal.save_base(script.thread, base.clone()).await;
        assert_eq!(saved, Ok(()));
        let count: i64 = session.value("SELECT count(*) FROM bases").await;
        assert_eq!(count, 0);
    }
}

/// Returns a text that cannot be compressed.
fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let letters = (0..length).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    });
    letters.collect()
}

/// An entry of an index has at most 2,704 bytes.
#[tokio::test]
async fn long_texts_come_back() {
    let journal = open(&options(server::shared())).await;
    let (cwd, turn) = (format!("/{}", noise(8_000)), noise(9_000));
    let scope = ListScope {
        tenant: Some("mill".to_owned()),
        principal: Some(noise(10_000)),
    };
    let mut script = ThreadScript::new();
    script.start_by(&journal, &cwd, &scope).await;
    script.turn(&journal, &turn, "go").await;
    let query = ListQuery {
        scope,
        cwds: vec![cwd.clone()],
        limit: 10,
        ..ListQuery::default()
    };
    let page = journal.list(query.clone()).await.unwrap();
    assert_eq!(page.entries.len(), 1);
    let other = ListQuery {
        cwds: vec![format!("{cwd}x")],
        ..query
    };
    let page = journal.list(other).await.unwrap();
    assert_eq!(page.entries, []);
    let query = PageQuery {
        limit: 10,
        ..PageQuery::default()
    };
    let items = journal.items(script.thread, Some(turn.as_str().into()), query);
    assert_eq!(items.await.unwrap().entries.len(), 2);
}
