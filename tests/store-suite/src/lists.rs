//! Lists of threads follow the records.

use raddle_core::ports::{Journal, ListOrder, ListQuery, Page, Pages, ReadError, Summary};
use raddle_core::{Event, RecordBody, Seq, Thread, ThreadId, ThreadSource};

use crate::StoreMaker;
use crate::records::{
    ThreadScript, begin_turn, delta, forked, item_started, owned, renamed, started, turn_ended,
};

suite!(lists:
    newest_first,
    in_every_order,
    pages_of_a_list_meet,
    the_way_back_begins_where_the_page_did,
    every_filter,
    archived_threads_have_their_own_list,
    only_those_of_a_folder,
    a_summary_is_that_of_the_thread,
    a_deleted_thread_is_not_listed,
    an_unused_thread_can_be_left_out,
    a_copy_is_listed_once_it_is_its_own,
    an_invalid_cursor_is_rejected,
);

pub(crate) fn query(limit: usize) -> ListQuery {
    ListQuery {
        limit,
        ..ListQuery::default()
    }
}

pub(crate) fn ids(page: &Page<Summary>) -> Vec<ThreadId> {
    page.entries.iter().map(|summary| summary.thread).collect()
}

pub(crate) async fn threads(journal: &impl Journal, count: usize) -> Vec<ThreadScript> {
    let mut scripts = Vec::new();
    for at in 0..count {
        let mut script = ThreadScript::new();
        // Some share a time, so that the order depends on the id too.
        script.now = 1_000 * (at as i64 / 2);
        script.start(journal, &format!("/w{}", at % 3)).await;
        scripts.push(script);
    }
    scripts
}

async fn an_unused_thread_can_be_left_out(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut scripts = threads(journal, 3).await;
    scripts[1].turn(journal, "t", "hi").await;
    let used = ListQuery {
        used: true,
        ..query(10)
    };
    assert_eq!(ids(&journal.list(used).await.unwrap()), [scripts[1].thread]);
    assert_eq!(journal.list(query(10)).await.unwrap().entries.len(), 3);
}

async fn newest_first(maker: impl StoreMaker) {
    let journal = maker.store();
    assert_eq!(journal.list(query(10)).await.unwrap().entries, []);
    let mut scripts = threads(journal, 4).await;
    let order: Vec<ThreadId> = scripts.iter().rev().map(|it| it.thread).collect();
    let page = journal.list(query(10)).await.unwrap();
    assert_eq!(ids(&page), order);
    assert_eq!(page.next, None);
    // A turn makes the oldest thread the newest.
    scripts[0].now = 100_000;
    scripts[0].turn(journal, "t", "again").await;
    let page = journal.list(query(10)).await.unwrap();
    assert_eq!(ids(&page)[0], scripts[0].thread);
}

async fn in_every_order(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut scripts = threads(journal, 3).await;
    // Created as 0 1 2; turns began as 2 0 1; last updated as 1 2 0.
    for (which, began, ended) in [
        (2, 10_000, 50_000),
        (0, 20_000, 60_000),
        (1, 30_000, 40_000),
    ] {
        let script = &mut scripts[which];
        script.now = began;
        script.append(journal, begin_turn("t", "go")).await;
        script.now = ended;
        script.append(journal, vec![turn_ended("t")]).await;
        // Events inside a turn, or about its owner, are no updates.
        script.now = 70_000;
        script.append(journal, vec![owned()]).await;
    }
    for (order, oldest_first) in [
        (ListOrder::Created, [0, 1, 2]),
        (ListOrder::Recency, [2, 0, 1]),
        (ListOrder::Updated, [1, 2, 0]),
    ] {
        let mut expected = oldest_first.map(|which| scripts[which].thread);
        let mut query = ListQuery {
            order,
            oldest_first: true,
            ..query(10)
        };
        let page = journal.list(query.clone()).await.unwrap();
        assert_eq!(ids(&page), expected, "{order:?}");
        expected.reverse();
        query.oldest_first = false;
        let page = journal.list(query.clone()).await.unwrap();
        assert_eq!(ids(&page), expected, "{order:?}");
        // A cursor of another order is rejected.
        query.cursor = page.back;
        query.order = match order {
            ListOrder::Created => ListOrder::Recency,
            _ => ListOrder::Created,
        };
        assert_eq!(journal.list(query).await, Err(ReadError::BadCursor));
    }
}

async fn the_way_back_begins_where_the_page_did(maker: impl StoreMaker) {
    let journal = maker.store();
    let scripts = threads(journal, 7).await;
    assert_eq!(
        journal
            .list(ListQuery {
                archived: true,
                ..query(1)
            })
            .await,
        Ok(Page::empty())
    );
    let mut query = query(2);
    query.cursor = journal.list(query.clone()).await.unwrap().next;
    let page = journal.list(query.clone()).await.unwrap();
    assert_eq!(ids(&page), [scripts[4].thread, scripts[3].thread]);
    query.cursor = page.back.clone();
    // The same page again, or in the other direction.
    let again = journal.list(query.clone()).await.unwrap();
    assert_eq!(ids(&again), ids(&page));
    query.oldest_first = true;
    let back = journal.list(query).await.unwrap();
    assert_eq!(ids(&back), [scripts[4].thread, scripts[5].thread]);
}

async fn every_filter(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut scripts = Vec::new();
    for (provider, source, originator, name) in [
        ("one", ThreadSource::Cli, "tui", "Ägäis"),
        ("two", ThreadSource::Editor, "ide", "50%_Off!"),
        ("one", ThreadSource::Exec, "ide", "other"),
        ("one", ThreadSource::Other("mine".to_owned()), "", "other"),
    ] {
        let mut script = ThreadScript::new();
        script.now = 1_000 * scripts.len() as i64;
        let mut body = started(script.thread, &format!("/w{}", scripts.len()));
        if let RecordBody::Event(event) = &mut body
            && let Event::ThreadStarted(it) = &mut **event
        {
            it.settings.provider = Some(provider.to_owned());
            it.source = source;
            it.originator = (!originator.is_empty()).then(|| originator.to_owned());
        }
        let bodies = vec![body, owned(), renamed(name)];
        script.append(journal, bodies).await;
        script.turn(journal, "t", "first Words").await;
        scripts.push(script);
    }
    let texts = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let all = query(10);
    let mine = ThreadSource::Other("mine".to_owned());
    for (query, expected) in [
        (
            ListQuery {
                cwds: texts(&["/w2", "/w0", "/w2", "/none"]),
                ..all.clone()
            },
            vec![2, 0],
        ),
        (
            ListQuery {
                providers: texts(&["one"]),
                ..all.clone()
            },
            vec![3, 2, 0],
        ),
        (
            ListQuery {
                providers: texts(&["two", "none"]),
                ..all.clone()
            },
            vec![1],
        ),
        (
            ListQuery {
                originators: texts(&["ide"]),
                ..all.clone()
            },
            vec![2, 1],
        ),
        (
            ListQuery {
                sources: Some(vec![ThreadSource::Cli, ThreadSource::Editor]),
                ..all.clone()
            },
            vec![1, 0],
        ),
        (
            ListQuery {
                sources: Some(vec![mine]),
                ..all.clone()
            },
            vec![3],
        ),
        (
            ListQuery {
                sources: Some(vec![]),
                ..all.clone()
            },
            vec![],
        ),
        (
            ListQuery {
                title: Some("äGä".to_owned()),
                ..all.clone()
            },
            vec![0],
        ),
        (
            ListQuery {
                title: Some("t w".to_owned()),
                ..all.clone()
            },
            vec![3, 2, 1, 0],
        ),
        (
            ListQuery {
                title: Some("0%_oFF!".to_owned()),
                ..all.clone()
            },
            vec![1],
        ),
        (
            ListQuery {
                title: Some("0__off".to_owned()),
                ..all.clone()
            },
            vec![],
        ),
        (
            ListQuery {
                title: Some("so be it".to_owned()),
                ..all.clone()
            },
            vec![],
        ),
        (
            ListQuery {
                title: Some("so be it".repeat(10_000)),
                ..all.clone()
            },
            vec![],
        ),
        (
            ListQuery {
                except: vec![scripts[1].thread],
                ..all.clone()
            },
            vec![3, 2, 0],
        ),
    ] {
        let expected: Vec<ThreadId> = expected
            .iter()
            .map(|at: &usize| scripts[*at].thread)
            .collect();
        for limit in [1, 2, 10] {
            let mut query = ListQuery {
                limit,
                ..query.clone()
            };
            let mut listed = Vec::new();
            loop {
                let page = journal.list(query.clone()).await.unwrap();
                listed.extend(ids(&page));
                query.cursor = page.next;
                if query.cursor.is_none() {
                    break;
                }
            }
            assert_eq!(listed, expected, "{query:?}");
        }
    }
}

async fn pages_of_a_list_meet(maker: impl StoreMaker) {
    let journal = maker.store();
    let scripts = threads(journal, 11).await;
    let order: Vec<ThreadId> = scripts.iter().rev().map(|it| it.thread).collect();
    for limit in [1, 2, 3, 11, 12] {
        let mut listed = Vec::new();
        let mut query = query(limit);
        loop {
            let page = journal.list(query.clone()).await.unwrap();
            assert!(page.entries.len() <= limit);
            listed.extend(ids(&page));
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
        assert_eq!(listed, order, "in pages of {limit}");
    }
}

async fn archived_threads_have_their_own_list(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut scripts = threads(journal, 2).await;
    let archived = ListQuery {
        archived: true,
        ..query(10)
    };
    scripts[1]
        .append(journal, vec![Event::Archived { principal: None }.into()])
        .await;
    let page = journal.list(query(10)).await.unwrap();
    assert_eq!(ids(&page), [scripts[0].thread]);
    let page = journal.list(archived.clone()).await.unwrap();
    assert_eq!(ids(&page), [scripts[1].thread]);
    assert!(page.entries[0].archived);
    scripts[1]
        .append(journal, vec![Event::Unarchived { principal: None }.into()])
        .await;
    assert_eq!(journal.list(archived).await.unwrap().entries, []);
}

async fn only_those_of_a_folder(maker: impl StoreMaker) {
    let journal = maker.store();
    let scripts = threads(journal, 7).await;
    let mut query = ListQuery {
        cwds: vec!["/w0".to_owned()],
        ..query(2)
    };
    let first = journal.list(query.clone()).await.unwrap();
    assert_eq!(ids(&first), [scripts[6].thread, scripts[3].thread]);
    query.cursor = first.next;
    let second = journal.list(query).await.unwrap();
    assert_eq!(ids(&second), [scripts[0].thread]);
    assert_eq!(second.next, None);
}

async fn a_summary_is_that_of_the_thread(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    script.turn(journal, "t1", "first words").await;
    script.turn(journal, "t2", "other words").await;
    script.append(journal, vec![renamed("a name")]).await;
    script.append(journal, vec![item_started("t", "i")]).await;
    script.append(journal, vec![delta("i", 0, "x")]).await;
    let mut thread = Thread::new();
    let records = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
    for record in records.unwrap() {
        thread.apply(&record);
    }
    let page = journal.list(query(10)).await.unwrap();
    assert_eq!(page.entries, [Summary::of(&thread).unwrap()]);
    assert_eq!(page.entries[0].preview, "first words");
    assert_eq!(page.entries[0].head, script.head);
}

async fn a_deleted_thread_is_not_listed(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut scripts = threads(journal, 3).await;
    // The thread leaves the list with its `Deleted` event, and stays unlisted after its deletion.
    scripts[1]
        .append(journal, vec![Event::Deleted { principal: None }.into()])
        .await;
    let rest = [scripts[2].thread, scripts[0].thread];
    assert_eq!(ids(&journal.list(query(10)).await.unwrap()), rest);
    journal.delete(scripts[1].thread).await.unwrap();
    journal.delete(scripts[2].thread).await.unwrap();
    let page = journal.list(query(10)).await.unwrap();
    assert_eq!(ids(&page), [scripts[0].thread]);
}

async fn a_copy_is_listed_once_it_is_its_own(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    let mut records = script.start(journal, "/w").await;
    records.extend(script.turn(journal, "t1", "one").await);
    let mut copy = ThreadScript {
        thread: ThreadId::mint(),
        ..script.clone()
    };
    let copied = journal.append(copy.thread, Seq::ZERO, &records, raddle_core::Class::Power);
    assert_eq!(copied.await, Ok(script.head));
    let page = journal.list(query(10)).await.unwrap();
    assert_eq!(ids(&page), [script.thread]);
    let forked = forked(copy.thread, script.thread, script.head, 1);
    copy.append(journal, vec![forked]).await;
    let page = journal.list(query(10)).await.unwrap();
    let mut both = [script.thread, copy.thread];
    both.sort_by(|one, other| other.cmp(one));
    assert_eq!(ids(&page), both);
    journal.delete(script.thread).await.unwrap();
    let page = journal.list(query(10)).await.unwrap();
    assert_eq!(ids(&page), [copy.thread]);
    assert_eq!(page.entries[0].cwd, "/fork");
}

async fn an_invalid_cursor_is_rejected(maker: impl StoreMaker) {
    let journal = maker.store();
    for cursor in ["", "x", "r1.x", "rx.y", "r99999999999999999999.1", "==r1"] {
        let query = ListQuery {
            cursor: Some(cursor.to_owned()),
            ..query(1)
        };
        assert_eq!(journal.list(query).await, Err(ReadError::BadCursor));
    }
}
