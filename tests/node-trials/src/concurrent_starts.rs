//! Many processes that start at once on an empty home.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use crate::node::NodeProcess;
use crate::{LATE, MockHome};

/// What one of them may take where it has a core to itself.
const EACH: Duration = Duration::from_secs(2);

pub fn run(raddle: &Path, starts: usize) -> Result<Vec<String>> {
    let home = MockHome::new(raddle)?;
    let begun = Instant::now();
    let started = std::thread::scope(|scope| {
        let one = || -> Result<NodeProcess> {
            let mut node = NodeProcess::start(raddle, home.path())?;
            node.call("thread/start", &json!({}))?;
            Ok(node)
        };
        let all: Vec<_> = (0..starts).map(|_| scope.spawn(one)).collect();
        let all = all.into_iter();
        all.map(|it| it.join().ok().context("a start panicked")?)
            .collect::<Result<Vec<NodeProcess>>>()
    })?;
    let took = begun.elapsed();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let limit = EACH * u32::try_from(starts)? / u32::try_from(cores)?;
    println!(
        "figure: {starts} starts at once on an empty home: {} ms of at most {}",
        took.as_millis(),
        limit.as_millis()
    );
    let mut wrongs = Vec::new();
    if took > limit {
        wrongs.push(format!(
            "{LATE}{starts} starts took {} ms",
            took.as_millis()
        ));
    }
    for node in started {
        node.end()?;
    }
    let said = std::fs::read_to_string(home.path().join("nodes.stderr"))?;
    if said.contains("lock") || said.contains("panicked") {
        wrongs.push(format!("the processes say: {said}"));
    }
    Ok(wrongs)
}
