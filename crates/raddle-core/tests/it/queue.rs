//! Bounds of a thread's queue.

use raddle_core::*;

use crate::simulated::SimulatedThread;

/// Most bytes in the queue, as stored.
const BYTES_MAX: usize = 8 << 20;

/// Creates input of this many bytes.
fn input(bytes: usize) -> Vec<Input> {
    let empty = serde_json::to_string(&[Input::text("")]).expect("JSON");
    vec![Input::text("x".repeat(bytes - empty.len()))]
}

fn enqueue(item: &str, bytes: usize) -> Command {
    Command::Enqueue(Enqueue {
        message: InputMessage {
            item: item.into(),
            input: input(bytes),
            client_id: None,
            hook_prompt: None,
        },
        principal: None,
    })
}

fn change(item: &str, bytes: usize) -> Command {
    Command::ChangeQueued(ChangeQueued {
        item: item.into(),
        input: input(bytes),
        principal: None,
    })
}

fn busy() -> SimulatedThread {
    let mut sim = SimulatedThread::new();
    sim.run_line("start t1 \"hi\"");
    sim
}

fn decide(sim: &SimulatedThread, command: Command) -> Result<(), Refusal> {
    let decided = sim.owner.thread().decide(command, sim.now);
    decided.map(|_| ())
}

#[test]
fn the_queue_has_a_maximum_of_bytes() {
    let mut sim = busy();
    sim.report(enqueue("q1", BYTES_MAX - 100));
    sim.settle();
    for (command, expected) in [
        (enqueue("q2", 100), Ok(())),
        (enqueue("q2", 101), Err(Refusal::QueueFull)),
        // A changed entry frees its own space.
        (change("q1", BYTES_MAX), Ok(())),
    ] {
        assert_eq!(decide(&sim, command), expected);
    }
}

#[test]
fn the_queue_has_a_maximum_of_entries() {
    let mut sim = busy();
    for number in 0..100 {
        let command = enqueue(&format!("q{number}"), 100);
        assert_eq!(decide(&sim, command.clone()), Ok(()));
        sim.report(command);
        sim.settle();
    }
    let more = enqueue("q100", 100);
    assert_eq!(decide(&sim, more), Err(Refusal::QueueFull));
    assert_eq!(decide(&sim, change("q7", 200)), Ok(()));
}
