//! Lists and searches return the threads of one tenant, or of one principal of it.

use raddle_core::ports::{ListOrder, ListQuery, ListScope, Pages};
use raddle_core::{Event, ThreadId};

use crate::StoreMaker;
use crate::lists::{ids, query};
use crate::records::{ThreadScript, forked, renamed};

suite!(scope:
    a_list_has_the_threads_of_its_tenant,
    a_list_has_the_threads_of_its_principal,
    a_search_stays_in_its_scope,
    a_scope_and_other_filters,
    a_fork_stays_with_its_tenant,
);

fn scope(tenant: Option<&str>, principal: Option<&str>) -> ListScope {
    ListScope {
        tenant: tenant.map(str::to_owned),
        principal: principal.map(str::to_owned),
    }
}

/// Starts four threads of each of these, in turn; the oldest is the first.
const OWNERS: [(Option<&str>, Option<&str>); 5] = [
    (Some("mill"), Some("ada")),
    (None, None),
    (Some("mill"), Some("bob")),
    (Some("yard"), Some("ada")),
    (None, Some("ada")),
];

async fn threads(maker: &impl StoreMaker) -> Vec<ThreadScript> {
    let mut scripts = Vec::new();
    for at in 0..4 * OWNERS.len() {
        let (tenant, principal) = OWNERS[at % OWNERS.len()];
        let mut script = ThreadScript::new();
        // Some share a time, so that the order depends on the id too.
        script.now = 1_000 * (at as i64 / 2);
        let by = scope(tenant, principal);
        let cwd = format!("/w{}", at % 2);
        script.start_by(maker.store(), &cwd, &by).await;
        scripts.push(script);
    }
    scripts
}

/// Returns the threads that have this owner, the newest first.
fn expected(scripts: &[ThreadScript], of: impl Fn(usize) -> bool) -> Vec<ThreadId> {
    let scripts = scripts.iter().enumerate().rev();
    let matching = scripts.filter(|(at, _)| of(at % OWNERS.len()));
    matching.map(|(_, script)| script.thread).collect()
}

/// Checks a list page by page, for pages of several sizes and in both directions.
async fn check_list(journal: &impl Pages, query: ListQuery, expected: &[ThreadId]) {
    for limit in [1, 2, 3, 10] {
        for oldest_first in [false, true] {
            let mut query = ListQuery {
                limit,
                oldest_first,
                ..query.clone()
            };
            let mut listed = Vec::new();
            loop {
                let page = journal.list(query.clone()).await.unwrap();
                assert!(page.entries.len() <= limit);
                assert!(page.entries.iter().all(|it| query.scope.holds(it)));
                listed.extend(ids(&page));
                query.cursor = page.next;
                if query.cursor.is_none() {
                    break;
                }
            }
            if oldest_first {
                listed.reverse();
            }
            assert_eq!(listed, expected, "{query:?}");
        }
    }
}

fn within(scope: ListScope) -> ListQuery {
    ListQuery { scope, ..query(10) }
}

async fn a_list_has_the_threads_of_its_tenant(maker: impl StoreMaker) {
    let scripts = threads(&maker).await;
    for (tenant, owners) in [
        (Some("mill"), vec![0, 2]),
        (Some("yard"), vec![3]),
        (Some("none"), vec![]),
        (Some(""), vec![]),
        // Threads without a tenant are a tenant of their own.
        (None, vec![1, 4]),
    ] {
        let expected = expected(&scripts, |owner| owners.contains(&owner));
        for order in [ListOrder::Recency, ListOrder::Created, ListOrder::Updated] {
            let query = ListQuery {
                order,
                ..within(scope(tenant, None))
            };
            check_list(maker.store(), query, &expected).await;
        }
    }
}

async fn a_list_has_the_threads_of_its_principal(maker: impl StoreMaker) {
    let scripts = threads(&maker).await;
    for (tenant, principal, owners) in [
        (Some("mill"), "ada", vec![0]),
        (Some("mill"), "bob", vec![2]),
        (Some("yard"), "ada", vec![3]),
        (Some("yard"), "bob", vec![]),
        (Some("mill"), "", vec![]),
        (None, "ada", vec![4]),
        (None, "bob", vec![]),
    ] {
        let expected = expected(&scripts, |owner| owners.contains(&owner));
        let query = within(scope(tenant, Some(principal)));
        check_list(maker.store(), query, &expected).await;
    }
}

async fn a_search_stays_in_its_scope(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut scripts = threads(&maker).await;
    for (at, script) in scripts.iter_mut().enumerate() {
        let text = match at % 3 {
            0 => "no such thing",
            _ => "a needle in the hay",
        };
        script.append(journal, vec![renamed(text)]).await;
    }
    maker.settle().await;
    for (tenant, principal, owners) in [
        (Some("mill"), None, vec![0, 2]),
        (Some("mill"), Some("ada"), vec![0]),
        (Some("yard"), Some("bob"), vec![]),
        (None, None, vec![1, 4]),
        (None, Some("ada"), vec![4]),
    ] {
        let mut matching = scripts.iter().enumerate().rev().collect::<Vec<_>>();
        matching.retain(|(at, _)| at % 3 != 0 && owners.contains(&(at % OWNERS.len())));
        let expected: Vec<ThreadId> = matching.iter().map(|(_, it)| it.thread).collect();
        for limit in [1, 2, 10] {
            let query = ListQuery {
                limit,
                ..within(scope(tenant, principal))
            };
            let matches = crate::search::pages_of(journal, "needle", query).await;
            assert_eq!(matches, expected, "{tenant:?} {principal:?}");
        }
    }
}

async fn a_scope_and_other_filters(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut scripts = threads(&maker).await;
    for script in &mut scripts[..10] {
        let archived = Event::Archived { principal: None };
        script.append(journal, vec![archived.into()]).await;
    }
    for (at, script) in scripts.iter_mut().enumerate() {
        let name = format!("Number {}", at % 4);
        script.append(journal, vec![renamed(&name)]).await;
    }
    let mill = within(scope(Some("mill"), None));
    let is_mill = |at: usize| [0, 2].contains(&(at % OWNERS.len()));
    let archived = ListQuery {
        archived: true,
        ..mill.clone()
    };
    let in_folder = ListQuery {
        cwds: vec!["/w1".to_owned(), "/none".to_owned()],
        ..mill.clone()
    };
    let titled = ListQuery {
        title: Some("number 3".to_owned()),
        ..mill.clone()
    };
    let without = ListQuery {
        except: vec![scripts[12].thread],
        ..mill.clone()
    };
    let filters: [(ListQuery, &dyn Fn(usize) -> bool); 5] = [
        (mill, &|at| at >= 10),
        (archived, &|at| at < 10),
        (in_folder, &|at| at >= 10 && at % 2 == 1),
        (titled, &|at| at >= 10 && at % 4 == 3),
        (without, &|at| at >= 10 && at != 12),
    ];
    for (query, passes) in filters {
        let matching = (0..scripts.len()).rev();
        let matching = matching.filter(|at| is_mill(*at) && passes(*at));
        let expected: Vec<ThreadId> = matching.map(|at| scripts[at].thread).collect();
        assert!(!expected.is_empty());
        let query = ListQuery {
            order: ListOrder::Created,
            ..query
        };
        check_list(journal, query, &expected).await;
    }
}

/// The principal of a fork is the one that forked it.
async fn a_fork_stays_with_its_tenant(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    let ada = scope(Some("mill"), Some("ada"));
    script.start_by(journal, "/w", &ada).await;
    let mut fork = script.fork(journal, script.head).await;
    let mut own = forked(fork.thread, script.thread, fork.head, 0);
    if let raddle_core::RecordBody::Event(event) = &mut own
        && let Event::Forked(it) = &mut **event
    {
        it.principal = Some("bob".to_owned());
    }
    fork.now = 10_000;
    fork.append(journal, vec![own]).await;
    for (tenant, principal, expected) in [
        (Some("mill"), None, vec![fork.thread, script.thread]),
        (Some("mill"), Some("ada"), vec![script.thread]),
        (Some("mill"), Some("bob"), vec![fork.thread]),
        (None, None, vec![]),
    ] {
        let query = within(scope(tenant, principal));
        check_list(journal, query, &expected).await;
    }
}
