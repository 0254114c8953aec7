//! `raddle fleet`: the database that stores the threads of a fleet.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use raddle_config::{Override, StoreSetting};
use raddle_console::Printer;
use raddle_store::{DatabaseReport, FleetJournal, FleetOptions};
use serde_json::{Value, json};

use crate::cli::{FleetChange, FleetCommand, FleetReport};
use crate::doctor::size;
use crate::home::Home;
use crate::{log, postgres, runtime};

/// Oldest supported version of the server.
const VERSION_MIN: i32 = 150_000;

/// Maximum difference of the clocks. Times of records are those of the nodes.
const SKEW_MS_MAX: u64 = 5_000;

pub(crate) fn run(overrides: Vec<Override>, command: FleetCommand) -> Result<ExitCode> {
    match command {
        FleetCommand::Init(FleetChange { settings }) => change(overrides, settings.config, None),
        FleetCommand::Migrate(FleetChange { settings }) => {
            change(overrides, settings.config, Some("raddle fleet init"))
        }
        FleetCommand::Check(args) => check(overrides, args),
        FleetCommand::Status(args) => status(overrides, args),
    }
}

/// Returns the options of the configured database.
fn options(mut overrides: Vec<Override>, own: Vec<Override>) -> Result<FleetOptions> {
    overrides.extend(own);
    match postgres::configured_store(&Home::find()?, overrides)? {
        StoreSetting::Postgres(store) => Ok(postgres::options(&store)),
        StoreSetting::Local => bail!(
            "the configuration names no database; set one with `raddle config set store.address \
             ADDRESS`, or with -c store.address=ADDRESS"
        ),
    }
}

fn report(options: &FleetOptions) -> Result<DatabaseReport> {
    let report = runtime::current_thread()?.block_on(FleetJournal::examine(options));
    report.context("the database cannot be examined")
}

/// Creates or migrates the tables. `creator` is the command to name if they must exist and do not.
fn change(overrides: Vec<Override>, own: Vec<Override>, creator: Option<&str>) -> Result<ExitCode> {
    let options = options(overrides, own)?;
    let before = report(&options)?;
    if let (None, Some(creator)) = (before.layout, creator) {
        bail!(
            "there are no tables in the schema {}; create them with `{creator}`",
            before.schema
        );
    }
    let opened = runtime::current_thread()?.block_on(async {
        let opened = FleetJournal::open(&options).await;
        opened.map(drop)
    });
    opened.context("the tables cannot be created or migrated")?;
    let (schema, layout) = (&before.schema, before.layout_of_build);
    log::print_line(&match before.layout {
        None => format!("raddle: created the tables in the schema {schema}, layout {layout}"),
        Some(old) if old == layout => {
            format!("raddle: the tables in the schema {schema} have the layout {layout} already")
        }
        Some(old) => {
            format!(
                "raddle: migrated the tables in the schema {schema} from layout {old} to {layout}"
            )
        }
    });
    Ok(ExitCode::SUCCESS)
}

fn status(overrides: Vec<Override>, args: FleetReport) -> Result<ExitCode> {
    let report = report(&options(overrides, args.settings.config)?)?;
    let mut printer = Printer::new();
    if args.json {
        printer.line(&as_json(&report).to_string())?;
        printer.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let layout = match report.layout {
        Some(layout) => format!("{layout} in the schema {}", report.schema),
        None => format!("no tables in the schema {}", report.schema),
    };
    let threads = report
        .threads
        .map_or_else(|| "unknown".to_owned(), |it| format!("about {it}"));
    let lines = [
        ("server", format!("PostgreSQL {}", report.version)),
        ("layout", layout),
        ("standbys", standbys(&report)),
        ("threads", threads),
        ("size", size(report.bytes.unsigned_abs())),
    ];
    for (name, text) in lines {
        printer.line(&format!("{name:<9} {text}"))?;
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn standbys(report: &DatabaseReport) -> String {
    match report.synchronous_standbys {
        None => "this role may not see them; grant it pg_monitor".to_owned(),
        Some(0) => "commits wait for none".to_owned(),
        Some(1) => "commits wait for 1".to_owned(),
        Some(count) => format!("commits wait for some of {count}"),
    }
}

/// Returns the durability of events, by the name that clients get.
fn durability(report: &DatabaseReport) -> &'static str {
    match report.has_second_copy() {
        true => "synchronous",
        false => "relaxed",
    }
}

fn as_json(report: &DatabaseReport) -> Value {
    json!({
        "version": report.version,
        "schema": report.schema,
        "layout": report.layout,
        "layoutOfBuild": report.layout_of_build,
        "durability": durability(report),
        "synchronousStandbys": report.synchronous_standbys,
        "mayCreate": report.may_create,
        "clockAheadMs": report.clock_ahead_ms,
        "connectionsMax": report.connections_max,
        "connectionsOfNode": report.connections_of_node,
        "bytes": report.bytes,
        "threads": report.threads,
    })
}

/// Result of one check.
#[derive(Debug, PartialEq)]
struct DatabaseFinding {
    part: &'static str,
    state: &'static str,
    message: String,
    fix: Option<String>,
}

fn check(overrides: Vec<Override>, args: FleetReport) -> Result<ExitCode> {
    let report = report(&options(overrides, args.settings.config)?)?;
    let findings = findings(&report);
    let mut printer = Printer::new();
    if args.json {
        let parts: Vec<Value> = findings
            .iter()
            .map(|it| json!({ "part": it.part, "state": it.state, "message": it.message, "fix": it.fix }))
            .collect();
        printer.line(&json!({ "database": as_json(&report), "parts": parts }).to_string())?;
    } else {
        for finding in &findings {
            printer.line(&format!(
                "{:<8} {}: {}",
                finding.state, finding.part, finding.message
            ))?;
            if let Some(fix) = &finding.fix {
                printer.line(&format!("         to fix: {fix}"))?;
            }
        }
    }
    printer.flush()?;
    Ok(match findings.iter().any(|it| it.state == "error") {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
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
fn findings(report: &DatabaseReport) -> Vec<DatabaseFinding> {
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
