//! Share of the machine that other programs used during a measurement.

use std::fs;

use anyhow::{Context, Result};

/// A running measurement. All times are in the kernel's ticks, so their length does not matter.
pub struct Noise {
    servers: Vec<u32>,
    busy: u64,
    total: u64,
    ours: u64,
}

impl Noise {
    /// Starts a measurement. `servers` are our own processes, which live until its end.
    pub fn begin(servers: &[u32]) -> Result<Self> {
        let (busy, total) = machine()?;
        Ok(Self {
            servers: servers.to_vec(),
            busy,
            total,
            ours: ours(servers)?,
        })
    }

    /// Returns the share of all processors that other programs used, from 0 to 1.
    pub fn end(self) -> Result<f64> {
        let (busy, total) = machine()?;
        let ours = ours(&self.servers)? - self.ours;
        let other_ticks = (busy - self.busy).saturating_sub(ours);
        Ok(other_ticks as f64 / (total - self.total).max(1) as f64)
    }
}

/// Returns the ticks of all processors: busy ticks and all ticks.
fn machine() -> Result<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().context("an empty /proc/stat")?;
    // user nice system idle iowait irq softirq steal; guest time is already in user.
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .take(8)
        .map(|word| Ok(word.parse()?))
        .collect::<Result<_>>()?;
    let [user, nice, system, idle, waiting, irq, softirq, stolen] = ticks[..] else {
        anyhow::bail!("/proc/stat begins with `{line}`");
    };
    let busy = user + nice + system + irq + softirq + stolen;
    Ok((busy, busy + idle + waiting))
}

/// Returns the ticks of this process, of its ended children, and of these servers.
fn ours(servers: &[u32]) -> Result<u64> {
    let mut ticks = process_ticks("self", 4)?;
    for server in servers {
        ticks += process_ticks(&server.to_string(), 2)?;
    }
    Ok(ticks)
}

/// Returns the sum of the first `fields` of utime, stime, and the same of ended children.
pub fn process_ticks(process: &str, fields: usize) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in parentheses may contain anything, so the fields are counted after it.
    let (_, rest) = text.rsplit_once(')').context("no name in stat")?;
    let ticks = rest.split_whitespace().skip(11).take(fields);
    ticks.map(|word| Ok(word.parse::<u64>()?)).sum()
}
