//! Which steps are run.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::Ci;
use super::rotation::Day;

/// One named step.
pub struct CiStep {
    pub name: &'static str,
    pub about: &'static str,
    /// Steps whose result this one uses. They are run too, whatever was asked for.
    pub needs: &'static [&'static str],
    /// Whether it runs beside the steps that follow, until one needs it.
    pub background: bool,
    /// The day of the rotation on which it is run; `None` is every day.
    pub rotation: Option<u64>,
    pub run: fn(&Ci) -> Result<()>,
}

/// What was asked for.
pub enum StepChoice {
    All,
    Only(Vec<String>),
    From(String),
}

impl CiStep {
    /// A step that runs every day, in the foreground, and needs no other.
    pub const fn new(name: &'static str, about: &'static str, run: fn(&Ci) -> Result<()>) -> Self {
        Self {
            name,
            about,
            needs: &[],
            background: false,
            rotation: None,
            run,
        }
    }

    pub const fn needs(mut self, steps: &'static [&'static str]) -> Self {
        self.needs = steps;
        self
    }

    pub const fn in_background(mut self) -> Self {
        self.background = true;
        self
    }

    pub const fn on_day(mut self, day: u64) -> Self {
        self.rotation = Some(day);
        self
    }
}

/// The steps to run, in the order of the list. A day leaves out the slices of other days, but for those that
/// were asked for by name.
pub fn plan<'a>(
    all: &'a [CiStep],
    choice: &StepChoice,
    day: Option<Day>,
) -> Result<Vec<&'a CiStep>> {
    let is_today = |at: &usize| day.is_none_or(|day| day.runs(&all[*at]));
    let mut wanted: BTreeSet<usize> = match choice {
        StepChoice::All => (0..all.len()).filter(is_today).collect(),
        StepChoice::Only(names) => names
            .iter()
            .map(|name| find(all, name))
            .collect::<Result<_>>()?,
        StepChoice::From(name) => {
            let first = find(all, name)?;
            let rest = (first + 1..all.len()).filter(is_today);
            rest.chain([first]).collect()
        }
    };
    // A need may have needs: go on until nothing is added.
    loop {
        let mut needed = BTreeSet::new();
        for at in &wanted {
            for name in all[*at].needs {
                needed.insert(find(all, name)?);
            }
        }
        if needed.is_subset(&wanted) {
            return Ok(wanted.into_iter().map(|at| &all[at]).collect());
        }
        wanted.extend(needed);
    }
}

fn find(all: &[CiStep], name: &str) -> Result<usize> {
    match all.iter().position(|step| step.name == name) {
        Some(at) => Ok(at),
        None => {
            let names: Vec<&str> = all.iter().map(|step| step.name).collect();
            bail!("no step `{name}`; the steps are {}", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ci::steps::STEPS;

    fn names(choice: &StepChoice) -> Vec<&'static str> {
        plan(STEPS, choice, None)
            .expect("known steps")
            .iter()
            .map(|step| step.name)
            .collect()
    }

    #[test]
    fn what_a_step_needs_is_run_before_it() {
        let only = StepChoice::Only(vec!["clients".to_owned()]);
        assert_eq!(names(&only), ["parts", "release", "clients"]);
    }

    #[test]
    fn from_goes_to_the_end() {
        let found = names(&StepChoice::From("soak".to_owned()));
        assert_eq!(found, ["parts", "release", "soak", "journal"]);
    }

    #[test]
    fn a_slice_of_another_day_is_left_out_unless_it_is_named() {
        let planned = |choice: &StepChoice, day: u64| -> Vec<&str> {
            let steps = plan(STEPS, choice, Some(Day(day))).expect("known steps");
            steps.iter().map(|step| step.name).collect()
        };
        assert!(planned(&StepChoice::All, 0).contains(&"nodes"));
        assert!(!planned(&StepChoice::All, 1).contains(&"nodes"));
        assert!(planned(&StepChoice::Only(vec!["nodes".to_owned()]), 1).contains(&"nodes"));
        assert!(planned(&StepChoice::From("nodes".to_owned()), 1).contains(&"nodes"));
    }

    #[test]
    fn every_need_stands_before_its_step() {
        for (at, step) in STEPS.iter().enumerate() {
            for need in step.needs {
                assert!(
                    find(STEPS, need).expect("a step") < at,
                    "{} before {need}",
                    step.name
                );
            }
        }
        assert_eq!(names(&StepChoice::All).len(), STEPS.len());
    }

    #[test]
    fn an_unknown_step_is_refused() {
        assert!(plan(STEPS, &StepChoice::From("clipy".to_owned()), None).is_err());
    }
}
