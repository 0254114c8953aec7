//! Which steps are run.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::Ci;

/// One named step.
pub struct Step {
    pub name: &'static str,
    pub about: &'static str,
    /// Steps whose result this one uses. They are run too, whatever was asked for.
    pub needs: &'static [&'static str],
    pub run: fn(&Ci) -> Result<()>,
}

/// What was asked for.
pub enum Choice {
    All,
    Only(Vec<String>),
    From(String),
}

/// The steps to run, in the order of the list.
pub fn plan<'a>(all: &'a [Step], choice: &Choice) -> Result<Vec<&'a Step>> {
    let mut wanted: BTreeSet<usize> = match choice {
        Choice::All => (0..all.len()).collect(),
        Choice::Only(names) => names
            .iter()
            .map(|name| find(all, name))
            .collect::<Result<_>>()?,
        Choice::From(name) => (find(all, name)?..all.len()).collect(),
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

fn find(all: &[Step], name: &str) -> Result<usize> {
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

    fn names(choice: &Choice) -> Vec<&'static str> {
        plan(STEPS, choice)
            .expect("known steps")
            .iter()
            .map(|step| step.name)
            .collect()
    }

    #[test]
    fn what_a_step_needs_is_run_before_it() {
        let only = Choice::Only(vec!["clients".to_owned()]);
        assert_eq!(names(&only), ["parts", "release", "clients"]);
    }

    #[test]
    fn from_goes_to_the_end() {
        let found = names(&Choice::From("deny".to_owned()));
        assert_eq!(found, ["deny", "docs", "crates"]);
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
        assert_eq!(names(&Choice::All).len(), STEPS.len());
    }

    #[test]
    fn an_unknown_step_is_refused() {
        assert!(plan(STEPS, &Choice::From("clipy".to_owned())).is_err());
    }
}
