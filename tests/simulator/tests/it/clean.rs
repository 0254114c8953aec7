//! Without a planted bug no promise breaks, and the same seed gives the same run.

use simulator::scenario::{FLEET_SEEDS, Medium, Scenario};
use simulator::{isolated, play};

fn check(seed: u64) {
    let scenario = Scenario::of(seed);
    let outcome = play(&scenario, false);
    if let Some(broken) = outcome.broken {
        panic!("seed {seed}: {}: {}", broken.promise, broken.how);
    }
}

#[test]
fn five_hundred_seeds_keep_every_promise() {
    for seed in 0..500 {
        check(seed);
    }
}

#[test]
fn two_hundred_seeds_of_a_fleet_keep_every_promise() {
    let seeds = FLEET_SEEDS..;
    let fleet = seeds.filter(|seed| Scenario::of(*seed).medium == Medium::Fleet);
    for seed in fleet.take(200) {
        check(seed);
    }
}

#[test]
fn a_seed_is_always_the_same_run() {
    for seed in (0..100).chain(FLEET_SEEDS..FLEET_SEEDS + 100) {
        let scenario = Scenario::of(seed);
        let traces = [play(&scenario, false).trace, play(&scenario, false).trace];
        assert_eq!(traces[0], traces[1], "seed {seed}");
    }
}

#[test]
fn a_thread_is_independent_of_others() {
    for seed in 0..200 {
        let broken = isolated(&Scenario::of(seed)).err();
        assert_eq!(broken, None, "seed {seed}");
    }
}
