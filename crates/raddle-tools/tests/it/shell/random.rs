//! Random lines, made of tokens with a meaning to shells.
//!
//! Each number is one input, the same on every machine: a number that fails is a seed of the fuzz
//! target `shell`.

use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ::support::Rng;

use super::property;

/// Number of inputs of an ordinary run. `cargo xtask prove shell` sets the variable.
const INPUTS: u64 = 50_000;
const VARIABLE: &str = "RADDLE_SHELL_INPUTS";

/// Number of inputs that a thread takes at a time.
const BATCH: u64 = 1_000;

const PIECES_MAX: u64 = 24;

/// A zero byte ends the first of the two lines of an input.
const PIECES: &[&str] = &[
    "rm",
    "git",
    "push",
    "cargo",
    "test",
    "x",
    "a=b",
    "-c",
    "/",
    "~",
    ".",
    "1",
    "ä",
    "\u{fffd}",
    " ",
    " ",
    " ",
    "\t",
    "\n",
    "\n",
    "\\\n",
    "\\",
    "\\\\",
    "'",
    "\"",
    "`",
    "$",
    "$'",
    "$\"",
    "$(",
    ")",
    "$((",
    "))",
    "${",
    "}",
    "(",
    "{ ",
    "; }",
    "[",
    "]",
    "[[ ",
    " ]]",
    "=",
    "+=",
    "a[",
    "]=",
    "|",
    "||",
    "&",
    "&&",
    ";",
    ";;",
    "!",
    "#",
    " #",
    "<",
    ">",
    ">>",
    "<<",
    "<<-",
    "<<<",
    "<(",
    ">(",
    ">&",
    "2>",
    "E\n",
    "\nE\n",
    "'E'",
    "*",
    "?",
    "if ",
    "then ",
    "fi",
    "for ",
    "in ",
    "do ",
    "done",
    "while ",
    "case ",
    "esac",
    "function ",
    "() ",
    "eval ",
    "sh -c ",
    "env ",
    "xargs ",
    "time ",
    "exec ",
    "\r",
    "\u{1b}",
    "\0",
    "\0",
    "\0",
];

/// The sequence of a number.
pub(super) fn rng(number: u64) -> Rng {
    Rng::from_state(number.wrapping_mul(0xd134_2543_de82_ef95))
}

fn input(number: u64) -> Vec<u8> {
    let mut rng = rng(number);
    let count = 1 + rng.below(PIECES_MAX);
    let pieces = (0..count).map(|_| *rng.pick(PIECES));
    pieces.collect::<String>().into_bytes()
}

#[test]
fn more_is_no_looser_in_random_lines() {
    let inputs = std::env::var(VARIABLE).map_or(INPUTS, |it| it.parse().expect("a number"));
    let next = AtomicU64::new(0);
    let failed = AtomicU64::new(u64::MAX);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while failed.load(Ordering::Relaxed) == u64::MAX {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    if first >= inputs {
                        return;
                    }
                    for number in first..inputs.min(first + BATCH) {
                        let input = input(number);
                        if panic::catch_unwind(|| property::more_is_no_looser(&input)).is_err() {
                            failed.fetch_min(number, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    assert!(
        failed == u64::MAX,
        "input {failed}: {:?}",
        String::from_utf8_lossy(&input(failed))
    );
    eprintln!("figure: {inputs} random lines, none judged more loosely for what follows it");
}
