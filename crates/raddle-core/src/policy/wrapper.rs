//! Commands that run another command, which is judged too.

use super::command::{base_name, is_option, is_unknown, program_name};
use super::options::{ValuePosition, option};

/// Maximum number of start positions to consider where the options do not determine one.
const STARTS_MAX: usize = 16;

/// The command that a wrapper runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedCommand {
    /// Indexes at which the command may begin. More than one if an option is unknown, because the
    /// next word may be its value.
    pub starts: Vec<usize>,
    /// Whether running it through the wrapper is the same as running it directly.
    pub neutral: bool,
    /// Whether the wrapper adds arguments that are not in the line.
    pub adds_arguments: bool,
    /// Placeholders in its words, which the program replaces with text that is not in the line.
    pub placeholders: Vec<String>,
    /// Whether an option is unknown, so that any command may run.
    pub unsure: bool,
}

/// A wrapper. Options are separated by spaces; a trailing colon marks one with a value.
struct Wrapper {
    name: &'static str,
    /// Options with which it adds nothing to the command; `None` if it always adds something.
    neutral: Option<&'static str>,
    /// Known options with which it is not neutral.
    options: &'static str,
    /// Number of words before the command, apart from options.
    operands: usize,
}

const fn wrapper(name: &'static str, options: &'static str) -> Wrapper {
    Wrapper {
        name,
        neutral: None,
        options,
        operands: 0,
    }
}

const fn neutral(name: &'static str, neutral: &'static str, options: &'static str) -> Wrapper {
    Wrapper {
        name,
        neutral: Some(neutral),
        options,
        operands: 0,
    }
}

const fn after(operands: usize, it: Wrapper) -> Wrapper {
    Wrapper { operands, ..it }
}

const WRAPPERS: &[Wrapper] = &[
    neutral("nohup", "", ""),
    neutral("nice", "-n: --adjustment:", ""),
    neutral(
        "time",
        "-p",
        "-a -f: -o: -q -v --append --format: --output: --quiet --verbose",
    ),
    neutral("command", "-p", "-v -V"),
    neutral("builtin", "", ""),
    neutral("env", "-0 --null", ENV),
    neutral("setsid", "-w --wait", "-c -f --ctty --fork"),
    neutral("stdbuf", "-i: -o: -e: --input: --output: --error:", ""),
    after(
        1,
        neutral(
            "timeout",
            "-k: --kill-after: -s: --signal: -v --verbose --preserve-status --foreground",
            "-f -p",
        ),
    ),
    neutral("exec", "", "-a: -c -l"),
    wrapper("noglob", ""),
    wrapper("nocorrect", ""),
    after(1, wrapper("repeat", "")),
    wrapper("ionice", "-c: -n: -t --class: --classdata: --ignore"),
    after(1, wrapper("chrt", CHRT)),
    after(1, wrapper("taskset", "-a -c --all-tasks --cpu-list")),
    after(1, wrapper("flock", FLOCK)),
    after(1, wrapper("chroot", "--groups: --userspec: --skip-chdir")),
    after(1, wrapper("setarch", SETARCH)),
    wrapper("linux32", SETARCH),
    wrapper("linux64", SETARCH),
    wrapper("uname26", SETARCH),
    wrapper("choom", "-n: -p: --adjust: --pid:"),
    wrapper(
        "uclampset",
        "-a -m: -M: -p: -s -R --all-tasks --pid: --system --reset-on-fork",
    ),
    wrapper("softlimit", ""),
    wrapper(
        "chpst",
        "-u: -U: -b: -e: -/: -n: -l: -L: -m: -d: -o: -p: -f: -c: -t: -v -V -P -0 -1 -2",
    ),
    wrapper(
        "cpulimit",
        "-l: -P: -e: -p: -b -f -z -i -k -v --limit: --foreground --background",
    ),
    after(1, wrapper("faketime", "-f -m --exclude-monotonic")),
    wrapper(
        "dbus-launch",
        "--exit-with-session --sh-syntax --csh-syntax --autolaunch:",
    ),
    wrapper("trickle", "-s -d: -u: -w: -t: -l: -n: -p:"),
    wrapper("arch", "-x86_64 -arm64 -i386 -32 -64 -c -e: -d: -h"),
    after(1, wrapper("perf", PERF)),
    wrapper("unshare", UNSHARE),
    wrapper("nsenter", NSENTER),
    wrapper("setpriv", SETPRIV),
    wrapper("prlimit", ""),
    wrapper("numactl", ""),
    wrapper("strace", STRACE),
    wrapper("sotruss", "-e -f -F: -T: -o:"),
    wrapper(
        "ltrace",
        "-C -S -c -f -i -r -t -T -a: -e: -l: -n: -o: -p: -s: -u: -x:",
    ),
    wrapper("valgrind", ""),
    wrapper("watch", WATCH),
    wrapper("busybox", ""),
    wrapper("toybox", ""),
    wrapper("coproc", ""),
    wrapper("ld.so", LOADER),
    wrapper("sudo", SUDO),
    wrapper("doas", "-n -s -L -u: -C:"),
    wrapper("pkexec", "--disable-internal-agent --keep-cwd --user:"),
    wrapper(
        "runuser",
        "-m -p --preserve-environment -u: --user: -g: --group: -G: --supp-group:",
    ),
    after(1, wrapper("setuidgid", "")),
    after(1, wrapper("gosu", "")),
    after(1, wrapper("su-exec", "")),
    wrapper("systemd-run", SYSTEMD_RUN),
    wrapper("systemd-inhibit", "--what: --who: --why: --mode:"),
    wrapper("dbus-run-session", ""),
    wrapper(
        "fakeroot",
        "-u -l: -f: -i: -s: -b: --unknown-is-real --lib: --faked:",
    ),
    wrapper("firejail", ""),
    wrapper("bwrap", ""),
    wrapper("proot", ""),
    wrapper("eatmydata", ""),
    wrapper("proxychains", "-q -f:"),
    wrapper("proxychains4", "-q -f:"),
    wrapper("torsocks", ""),
    wrapper("unbuffer", "-p"),
    wrapper("rlwrap", ""),
    wrapper("chronic", "-v -e"),
    wrapper("ifne", "-n"),
    wrapper("tini", "-s -g -v -w -p:"),
    wrapper("dumb-init", "-c -v"),
    wrapper(
        "xvfb-run",
        "-a -e: -f: -n: -p: -s: -w: -l --auto-servernum --server-args:",
    ),
    wrapper("ssh-agent", "-c -s -D -d -a: -E: -t:"),
    wrapper(
        "hyperfine",
        "-w: -r: -m: -M: -p: -c: -s: -i -N -S: --warmup: --runs:",
    ),
    wrapper("entr", "-a -c -d -n -p -r -s -z"),
    wrapper("xargs", XARGS),
    wrapper("parallel", "-k -0 -j: -a: --jobs:"),
];

const ENV: &str =
    "- -i -u: -C: -S: -v --ignore-environment --unset: --chdir: --split-string: --debug";

const CHRT: &str =
    "-a -b -d -f -i -m -o -r -v --batch --deadline --fifo --idle --other --rr -T: -P: -D:";

const FLOCK: &str = "\
    -s -x -e -n -u -o -F -w: -E: -c: --shared --exclusive --nb --nonblock --unlock --close --no-fork \
    --verbose --wait: --timeout: --conflict-exit-code: --command:";

const SETARCH: &str = "-3 -B -F -I -L -R -S -T -X -Z -v --32bit --addr-no-randomize --verbose";

const UNSHARE: &str = "\
    -C -T -U -c -f -i -m -n -p -r -u --cgroup --fork --ipc --keep-caps --map-auto --map-current-user \
    --map-root-user --mount --net --pid --time --user --uts -R: -w: -S: -G: --root: --wd:";

const NSENTER: &str = "\
    -C -F -T -U -Z -a -i -m -n -p -r -u -w --all --cgroup --ipc --mount --net --no-fork --pid \
    --preserve-credentials --root --user --uts --wd -t: -S: -G: --target:";

const SETPRIV: &str = "\
    --clear-groups --init-groups --keep-groups --nnp --no-new-privs --reset-env --ambient-caps: \
    --bounding-set: --groups: --inh-caps: --pdeathsig: --regid: --reuid: --rgid: --ruid: --egid: --euid: \
    --securebits:";

const STRACE: &str = "\
    -C -D -F -T -c -d -f -i -k -q -r -t -v -w -x -y -z -Z -E: -I: -O: -P: -S: -U: -X: -a: -b: -e: -o: -p: \
    -s: -u:";

const WATCH: &str = "\
    -b -c -d -e -g -p -t -w -x -n: -q: --beep --chgexit --color --differences --errexit --exec \
    --interval: --no-title --no-wrap --precise";

const LOADER: &str =
    "--inhibit-cache --inhibit-rpath: --library-path: --preload: --argv0: --audit:";

const SUDO: &str = "\
    -A -B -E -H -K -N -P -S -b -i -k -n -s -u: -g: -h: -p: -C: -T: -D: -R: -r: -t: -U: --askpass --background \
    --bell --login --non-interactive --no-update --preserve-env --preserve-groups --reset-timestamp \
    --set-home --shell --stdin --chdir: --chroot: --close-from: --command-timeout: --group: --host: \
    --other-user: --prompt: --role: --type: --user:";

const PERF: &str = "\
    -A -a -B -C: -D: -F: -G: -I: -N -R -S -T -b -c: -d -e: -f -g -h -i: -j: -k -m: -n -o: -p: -q -r: -s: -t: -u: -v \
    -x: --all-cpus --call-graph: --cpu: --delay: --event: --freq: --group --input: --no-children --output: --pid: \
    --quiet --repeat: --sort: --stdio --tid: --verbose";

const SYSTEMD_RUN: &str = "\
    -G -P -S -d -q -r -t --collect --no-ask-password --no-block --pipe --pty --quiet --same-dir --scope \
    --shell --user --wait -E: -H: -M: -p: -u: --description: --gid: --nice: --on-active: --property: \
    --setenv: --slice: --uid: --unit: --working-directory:";

const XARGS: &str = "\
    -0 -e? -i? -l? -o -p -r -t -x --eof --exit --interactive --max-lines --no-run-if-empty --null \
    --open-tty --replace --verbose -I: -n: -P: -L: -d: -E: -s: -a: --arg-file: --delimiter: --max-args: \
    --max-chars: --max-procs: --process-slot-var:";

/// Wrappers that add arguments to the command.
const ARGUMENT_WRAPPERS: [&str; 3] = ["entr", "parallel", "xargs"];

/// Placeholders that `parallel` replaces in the command.
const PARALLEL: &str = "{} {.} {/} {//} {/.} {#} {%} {1} {2} {3}";

/// Finds the command that these words run, if they run another one.
pub fn wrapped_command(words: &[String]) -> Option<WrappedCommand> {
    let name = base_name(words.first()?);
    let wrapper = WRAPPERS.iter().find(|it| it.name == known_name(name))?;
    let mut neutral = wrapper.neutral.is_some() && program_name(&words[0]) == name;
    let mut unsure = false;
    // Fewest and most words that may still stand before the command.
    let (mut fewest, mut most) = (wrapper.operands, wrapper.operands);
    let (mut may_be_value, mut options_over) = (false, false);
    let mut starts = Vec::new();
    let mut placeholders: Vec<String> = match known_name(name) {
        "entr" => vec!["/_".to_owned()],
        "parallel" => PARALLEL.split(' ').map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let is_option = !options_over && (is_option(word) || word == "-");
        // An unknown word may expand to several.
        unsure |= is_unknown(word) && (is_option || most > 0);
        if is_option {
            may_be_value = false;
        }
        if is_option && word == "--" {
            options_over = true;
            // The operands before the command follow.
            neutral &= most == 0;
        } else if is_option {
            if name == "command" && word.contains(['v', 'V']) {
                return None;
            }
            let as_neutral = wrapper.neutral.and_then(|list| option(list, word));
            let known = as_neutral.or_else(|| option(wrapper.options, word));
            neutral &= as_neutral.is_some();
            if known_name(name) == "xargs" {
                placeholders.extend(replaced(word, words.get(at + 1)));
            }
            match known {
                Some(ValuePosition::Here) => {}
                Some(ValuePosition::Next) => {
                    at += 1;
                    unsure |= words.get(at).is_some_and(|it| is_unknown(it));
                }
                None => {
                    unsure = true;
                    may_be_value = !word.contains('=');
                }
            }
        } else if is_assignment(word) {
            neutral = false;
            may_be_value = false;
        } else {
            if fewest == 0 {
                starts.push(at);
            }
            if starts.len() == STARTS_MAX || most == 0 && !may_be_value {
                break;
            }
            fewest = fewest.saturating_sub(1);
            if !may_be_value {
                most -= 1;
            }
            may_be_value = false;
        }
        at += 1;
    }
    (!starts.is_empty()).then(|| WrappedCommand {
        neutral: neutral && !unsure && starts.len() == 1,
        adds_arguments: ARGUMENT_WRAPPERS.contains(&known_name(name)),
        placeholders,
        unsure,
        starts,
    })
}

/// The placeholder that an option of `xargs` sets, if it sets one.
fn replaced(option: &str, next: Option<&String>) -> Option<String> {
    if let Some(value) = option.strip_prefix("--replace") {
        let value = value.trim_start_matches('=');
        return Some(if value.is_empty() { "{}" } else { value }.to_owned());
    }
    let at = option.find(|it| "IiedlnPLEsa".contains(it))?;
    let value = &option[at + 1..];
    match &option[at..=at] {
        _ if option.starts_with("--") => None,
        "I" if value.is_empty() => next.cloned(),
        "i" if value.is_empty() => Some("{}".to_owned()),
        "I" | "i" => Some(value.to_owned()),
        _ => None,
    }
    .filter(|it| !it.is_empty())
}

/// Whether the program runs another one, whatever its arguments.
pub(super) fn is_wrapper(word: &str) -> bool {
    let name = known_name(base_name(word));
    WRAPPERS.iter().any(|it| it.name == name)
}

/// Returns the name under which a wrapper is listed. The dynamic loader and `setarch` have names
/// for each architecture. GNU programs have a `g` before their names where others are installed.
fn known_name(name: &str) -> &str {
    match name {
        "i386" | "i486" | "i586" | "i686" | "x86_64" => "linux64",
        "genv" | "gnice" | "gnohup" | "gstdbuf" | "gtimeout" | "gxargs" | "gtime" | "gchroot" => {
            &name[1..]
        }
        name if name.starts_with("ld-") && name.contains(".so") => "ld.so",
        name => name,
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|it: char| it.is_ascii_digit())
            && name
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || it == b'_')
    })
}
