//! Findings about a database, for its operator.

use raddle_store::{DatabaseReport, FleetJournal, FleetOptions};

/// Oldest supported version of the server.
const VERSION_MIN: i32 = 150_000;

/// Maximum difference of the clocks. Times of records are those of the nodes.
const SKEW_MS_MAX: u64 = 5_000;

/// Result of one check.
#[derive(Debug, PartialEq)]
pub(super) struct DatabaseFinding {
    pub(super) part: &'static str,
    pub(super) state: &'static str,
    pub(super) message: String,
    pub(super) fix: Option<String>,
}

pub(super) fn standbys(report: &DatabaseReport) -> String {
    match report.synchronous_standbys {
        None => "this role may not see them; grant it pg_monitor".to_owned(),
        Some(0) => "commits wait for none".to_owned(),
        Some(1) => "commits wait for 1".to_owned(),
        Some(count) => format!("commits wait for some of {count}"),
    }
}

/// Logs what is wrong with a database. A server that uses it runs all the same.
pub(crate) async fn log_findings(options: &FleetOptions) {
    let report = match FleetJournal::examine(options).await {
        Ok(report) => report,
        Err(error) => {
            tracing::warn!(%error, "the database cannot be examined");
            return;
        }
    };
    for finding in findings(&report) {
        let (part, message) = (finding.part, &finding.message);
        if let Some(fix) = &finding.fix {
            tracing::warn!(part, fix, "{message}");
        }
    }
}

/// Judges a database.
pub(super) fn findings(report: &DatabaseReport) -> Vec<DatabaseFinding> {
    let ok = |part, message| DatabaseFinding {
        part,
        state: "ok",
        message,
        fix: None,
    };
    let wrong = |part, state, message, fix: &str| DatabaseFinding {
        part,
        state,
        message,
        fix: Some(fix.to_owned()),
    };
    let mut findings = Vec::new();
    let version = format!("PostgreSQL {}", report.version);
    findings.push(match report.version_number >= VERSION_MIN {
        true => ok("version", version),
        false => wrong("version", "error", version, "use PostgreSQL 15 or later"),
    });
    let (schema, layout) = (&report.schema, report.layout_of_build);
    findings.push(match report.layout {
        Some(it) if it == layout => ok("tables", format!("layout {it} in the schema {schema}")),
        Some(it) if it < layout => wrong(
            "tables",
            "error",
            format!("layout {it} in the schema {schema}; this version needs {layout}"),
            "run `raddle fleet migrate`, or start a server of this version",
        ),
        Some(it) => wrong(
            "tables",
            "error",
            format!("layout {it} in the schema {schema}; this version knows {layout}"),
            "upgrade this program",
        ),
        None if report.may_create => wrong(
            "tables",
            "warning",
            format!("none in the schema {schema}"),
            "run `raddle fleet init`, or start a server, which creates them",
        ),
        None => wrong(
            "tables",
            "error",
            format!("none in the schema {schema}, and this role may not create them"),
            "run `raddle fleet init` with a role that may create the schema, or grant it",
        ),
    });
    findings.push(match report.synchronous_standbys {
        Some(0) => wrong(
            "standby",
            "warning",
            "commits wait for no standby: events that were acknowledged are lost with the primary"
                .to_owned(),
            "set synchronous_standby_names, with at least three members; a database whose storage \
             is replicated (Aurora, Neon, AlloyDB) needs none",
        ),
        None => wrong(
            "standby",
            "warning",
            "this role may not see the standbys".to_owned(),
            "grant it pg_monitor",
        ),
        Some(_) => ok("standby", standbys(report)),
    });
    let nodes = report.connections_max.unsigned_abs() / report.connections_of_node.max(1) as u64;
    let connections = format!(
        "{} allowed, {} for each node: at most {nodes} nodes",
        report.connections_max, report.connections_of_node
    );
    findings.push(match nodes {
        0 => wrong("connections", "error", connections, "raise max_connections"),
        _ => ok("connections", connections),
    });
    let ahead = report.clock_ahead_ms;
    let clock = format!(
        "the server's is {} ms {} this machine's",
        ahead.unsigned_abs(),
        if ahead < 0 { "behind" } else { "ahead of" }
    );
    let error_ms = u64::try_from(report.clock_error.as_millis()).unwrap_or(u64::MAX);
    findings.push(
        match ahead.unsigned_abs() > SKEW_MS_MAX.saturating_add(error_ms) {
            true => wrong("clock", "warning", clock, "synchronise both clocks by NTP"),
            false => ok("clock", clock),
        },
    );
    findings
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn good() -> DatabaseReport {
        DatabaseReport {
            version: "15.18".to_owned(),
            version_number: 150_018,
            schema: "raddle".to_owned(),
            layout: Some(1),
            layout_of_build: 1,
            synchronous_standbys: Some(1),
            may_create: true,
            clock_ahead_ms: 3,
            clock_error: Duration::from_millis(1),
            connections_max: 100,
            connections_of_node: 10,
            bytes: 1 << 20,
            threads: Some(3),
        }
    }

    #[test]
    fn each_property_has_a_finding_of_its_own() {
        let states = |report: &DatabaseReport| -> Vec<(&str, &str)> {
            let all = findings(report);
            let wrong = all.iter().filter(|it| it.state != "ok");
            wrong.map(|it| (it.part, it.state)).collect()
        };
        assert_eq!(states(&good()), []);
        let change = |change: fn(&mut DatabaseReport)| {
            let mut report = good();
            change(&mut report);
            states(&report)
        };
        for (found, expected) in [
            (
                change(|it| it.version_number = 140_009),
                ("version", "error"),
            ),
            (change(|it| it.layout = Some(0)), ("tables", "error")),
            (change(|it| it.layout = Some(2)), ("tables", "error")),
            (change(|it| it.layout = None), ("tables", "warning")),
            (
                change(|it| it.synchronous_standbys = Some(0)),
                ("standby", "warning"),
            ),
            (
                change(|it| it.synchronous_standbys = None),
                ("standby", "warning"),
            ),
            (
                change(|it| it.connections_max = 9),
                ("connections", "error"),
            ),
            (
                change(|it| it.clock_ahead_ms = -6_000),
                ("clock", "warning"),
            ),
        ] {
            assert_eq!(found, [expected]);
        }
    }
}
