//! Many processes that start simultaneously on an empty home.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use crate::node::NodeProcess;
use crate::{LATE, MockHome};

/// Time limit of one start on a core of its own.
const START_LIMIT: Duration = Duration::from_secs(2);

pub fn run(raddle: &Path, starts: usize) -> Result<Vec<String>> {
    let home = MockHome::new(raddle)?;
    let start = Instant::now();
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
    let elapsed = start.elapsed();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let limit = START_LIMIT * u32::try_from(starts)? / u32::try_from(cores)?;
    println!(
        "figure: {starts} starts at once on an empty home: {} ms of at most {}",
        elapsed.as_millis(),
        limit.as_millis()
    );
    let mut problems = Vec::new();
    if elapsed > limit {
        problems.push(format!(
            "{LATE}{starts} starts took {} ms",
            elapsed.as_millis()
        ));
    }
    for node in started {
        node.end()?;
    }
    let stderr = std::fs::read_to_string(home.path().join("nodes.stderr"))?;
    if stderr.contains("lock") || stderr.contains("panicked") {
        problems.push(format!("the processes say: {stderr}"));
    }
    Ok(problems)
}
