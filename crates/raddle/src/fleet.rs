//! `raddle fleet`: the database that stores the threads of a fleet.

pub(crate) mod findings;

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
use findings::{findings, standbys};

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
