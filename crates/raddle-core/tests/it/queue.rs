//! The queue's bounds.

use raddle_core::*;

use crate::simulated::SimulatedThread;

/// How much waits at most, as it is stored.
const BYTES_MAX: usize = 8 << 20;

/// Input that takes so many bytes.
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
    let mut life = SimulatedThread::new();
    life.say("start t1 \"hi\"");
    life
}

fn decide(life: &SimulatedThread, command: Command) -> Result<(), Refusal> {
    let decided = life.owner.thread().decide(command, life.now);
    decided.map(|_| ())
}

#[test]
fn so_much_waits() {
    let mut life = busy();
    life.report(enqueue("q1", BYTES_MAX - 100));
    life.settle();
    for (command, wanted) in [
        (enqueue("q2", 100), Ok(())),
        (enqueue("q2", 101), Err(Refusal::QueueFull)),
        // What is changed makes room for itself.
        (change("q1", BYTES_MAX), Ok(())),
    ] {
        assert_eq!(decide(&life, command), wanted);
    }
}

#[test]
fn so_many_wait() {
    let mut life = busy();
    for number in 0..100 {
        let command = enqueue(&format!("q{number}"), 100);
        assert_eq!(decide(&life, command.clone()), Ok(()));
        life.report(command);
        life.settle();
    }
    let more = enqueue("q100", 100);
    assert_eq!(decide(&life, more), Err(Refusal::QueueFull));
    assert_eq!(decide(&life, change("q7", 200)), Ok(()));
}
