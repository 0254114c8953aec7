//! Files between a home and PostgreSQL, and damage that is found through the ports.

use raddle_core::ports::Blobs;
use raddle_store::{DamageKind, Extent, export, verify};
use store_suite::records::{ThreadScript, record_with_blob};

use crate::bundle::event_numbers;
use crate::maker::{FleetMaker, open, options};
use crate::makers::LocalMaker;
use crate::server;
use crate::sql_session::SqlSession;
use crate::transfer::all;

bundle_tests!(mod local_to_fleet, LocalMaker => FleetMaker);
bundle_tests!(mod fleet_to_local, FleetMaker => LocalMaker);

/// Each change of a row is found, with the record at which it was detected.
#[tokio::test]
async fn what_differs_is_reported() {
    for (change, kind, place) in [
        (
            "UPDATE records SET body = body || '\\x00' WHERE seq = $third",
            DamageKind::Record,
            2,
        ),
        (
            "DELETE FROM records WHERE seq = $third",
            DamageKind::Record,
            3,
        ),
        (
            "UPDATE blobs SET body = substr(body, 1, 10)",
            DamageKind::Blob,
            LAST,
        ),
        (
            "DELETE FROM marks WHERE kind = 0",
            DamageKind::Derived,
            LAST,
        ),
        (
            "DELETE FROM marks WHERE kind = 2",
            DamageKind::Derived,
            LAST,
        ),
    ] {
        let options = options(server::shared());
        let journal = open(&options).await;
        let mut script = ThreadScript::new();
        script.start(&journal, "/w").await;
        script.turn(&journal, "t", "text").await;
        let thread = script.thread;
        let put = journal.put(thread, vec![7; 100_000], "image/png".to_owned());
        let blob = put.await.unwrap();
        script.append(&journal, vec![record_with_blob(&blob)]).await;
        let whole = verify(&journal, thread).await.unwrap();
        assert_eq!((whole.damage.len(), whole.blobs), (0, 1));
        let events = event_numbers(&all(&journal, thread).await);
        let change = change.replace("$third", &events[2].to_string());
        SqlSession::open(&options.schema).await.run(&change).await;
        let report = verify(&journal, thread).await.unwrap();
        let damage: Vec<_> = report.damage.iter().map(|it| (it.kind, it.at)).collect();
        let at = events.get(place).or(events.last()).copied();
        assert_eq!(
            damage,
            [(kind, at.unwrap())],
            "{change}: {:?}",
            report.damage
        );
        let mut file = Vec::new();
        let sound = export(&journal, thread, &mut file, Extent::Sound).await;
        let has_gap = kind != DamageKind::Derived;
        assert_eq!(!sound.unwrap().lacks.is_empty(), has_gap, "{change}");
    }
}

/// Place of the last event.
const LAST: usize = usize::MAX;
