//! Verdicts on the same command in many disguises.

use raddle_core::policy::Verdict;
use raddle_tools::shell::quoted;

use super::{POLICIES, judged, words};

/// Plain commands: forbidden, ask, allowed by a rule, known to be harmless, and unknown.
const BARE: [&str; 12] = [
    "rm -rf build",
    "git push --force origin",
    "dd if=a of=b",
    "git push origin main",
    "curl https://example.com",
    "cargo test",
    "npm ci",
    "git status",
    "ls -la",
    "rg TODO src",
    "touch x",
    "python3 x.py",
];

/// Templates that do not change the meaning: `@` is the command, `'` the command as one word.
const NEUTRAL: &[&str] = &[
    "@",
    "  @",
    "@  ",
    "@;",
    "@\n",
    "\n\n@",
    "\t@",
    "true && @",
    "@ && true",
    "true; @",
    "@; true",
    "false || @",
    "@ || false",
    "@ | cat",
    "echo x | @",
    "ls\n@",
    "@\nls",
    "ls;@;ls",
    "ls|@|wc -l",
    "bash -c '",
    "bash -lc '",
    "sh -c '",
    "dash -c '",
    "zsh -lc '",
    "/bin/bash -c '",
    "/bin/sh -lc '",
    "/usr/bin/bash -c '",
    "bash -l -c '",
    "env @",
    "nice @",
    "nice -n 5 @",
    "nice -10 @",
    "nice --adjustment=5 @",
    "nohup @",
    "timeout 5 @",
    "timeout -k 1 5 @",
    "timeout --signal=KILL 5s @",
    "timeout --foreground 5 @",
    "command @",
    "command -p @",
    "exec @",
    "time @",
    "time -p @",
    "stdbuf -o L @",
    "setsid @",
    "/usr/bin/env @",
    "/usr/bin/timeout 5 @",
    "nohup nice timeout 5 @",
    "env bash -c '",
    "timeout 5 bash -lc '",
    "nohup sh -c ' | tail -n 5",
];

/// Templates that may do more than the command: the verdict may be stricter, never looser.
const STRICTER: &[&str] = &[
    "sudo @",
    "sudo -u root @",
    "sudo -E -H -u root @",
    "sudo -u root -- @",
    "sudo --unheard of @",
    "doas @",
    "env A=b @",
    "env -i @",
    "env -u HOME @",
    "env -S '",
    "A=b @",
    "PATH=. @",
    "LD_PRELOAD=x @",
    "(@)",
    "( ( @ ) )",
    "{ @; }",
    "! @",
    "@ &",
    "ls & @",
    "@ > out",
    "@ >> out",
    "@ 2>/dev/null",
    "@ < in",
    "> out @",
    "echo $(@)",
    "echo `@`",
    "echo \"a $(@) b\"",
    "echo \"`@`\"",
    "echo ${X:-$(@)}",
    "cat <(@)",
    "ls > >(@)",
    "if true; then @; fi",
    "if @; then ls; fi",
    "if ls; then ls; elif @; then ls; fi",
    "if ls; then ls; else @; fi",
    "for i in 1 2; do @; done",
    "for i in $(@); do ls; done",
    "for ((i=0;i<3;i++)); do @; done",
    "while false; do @; done",
    "while @; do ls; done",
    "until @; do ls; done",
    "case x in x) @;; esac",
    "case $(@) in x) ls;; esac",
    "f() { @; }; f",
    "function f { @; }",
    "ls() { @; }; ls",
    "eval '",
    "eval @",
    "trap ' EXIT",
    "bash <<EOF\n@\nEOF",
    "sh -s <<'EOF'\n@\nEOF",
    "bash <<< '",
    "cat <<EOF\n$(@)\nEOF",
    "cat <<< \"$(@)\"",
    "xargs @",
    "ls | xargs -n 1 -P 4 @",
    "find . -exec @ ';'",
    "find . -execdir @ +",
    "find . -name x -ok @ ';'",
    "fd -x @",
    "fd --exec-batch @",
    "busybox @",
    "busybox sh -c '",
    "toybox @",
    "chroot / @",
    "su -c '",
    "su root -c '",
    "watch @",
    "watch -n 1 '",
    "flock x @",
    "flock x -c '",
    "strace -f @",
    "ltrace @",
    "unshare -r @",
    "ionice -c 3 @",
    "taskset 1 @",
    "parallel @",
    "script -qc '",
    "@ # all of it",
    "ls # no\n@",
    "x=$(@)",
    "export X=$(@)",
    "[[ -n $(@) ]]",
    "[ -n \"$(@)\" ]",
    "echo $(( $(@) ))",
    "(( x = $(@) ))",
    "coproc @",
    "@ |& cat",
    "time -o x @",
    "exec 3<&0; @",
    "git bisect run @",
    "git submodule foreach @",
    "bash -c ' x y",
    "bash -x -c '",
    "bash +e -c '",
    "bash --norc -c '",
    "ash -c '",
    "ksh -c '",
    "fish -c '",
    "bash -c \"$(echo '; @)\"",
    "/bin/\\\n@",
    "ls \\\n; @",
    "a=(1 $(@))",
    "echo {1..3} $(@)",
    "echo *; @",
    "nohup sudo env A=b nice timeout 5 bash -c '",
];

/// Numbers of commands before or after.
const CHAINS: [usize; 8] = [1, 2, 10, 49, 50, 51, 100, 200];

#[test]
fn a_disguise_changes_nothing() {
    let mut templates: Vec<String> = NEUTRAL.iter().map(|it| (*it).to_owned()).collect();
    for count in CHAINS {
        for separator in ["; ", " && ", "\n", " | "] {
            templates.push(format!("{}@", format!("ls{separator}").repeat(count)));
            templates.push(format!("@{}", format!("{separator}ls").repeat(count)));
        }
    }
    let mut count = 0;
    for bare in BARE {
        for line in templates
            .iter()
            .map(|it| fill(it, bare))
            .chain(quotings(bare))
        {
            for approval in &POLICIES {
                let (expected, actual) = (judged(bare, approval), judged(&line, approval));
                let about = format!("{bare:?} as {line:?} under {approval:?}: {actual:?}");
                assert_eq!(actual.verdict, expected.verdict, "{about}");
            }
            count += 1;
        }
    }
    assert!(count >= 500, "only {count} lines");
}

#[test]
fn no_disguise_loosens() {
    let mut count = 0;
    for bare in BARE {
        for line in STRICTER.iter().map(|it| fill(it, bare)) {
            for approval in &POLICIES {
                let (expected, actual) = (judged(bare, approval), judged(&line, approval));
                let about = format!("{bare:?} as {line:?} under {approval:?}: {actual:?}");
                assert!(actual.verdict >= expected.verdict, "{about}");
            }
            count += 1;
        }
    }
    assert!(count >= 500, "only {count} lines");
}

/// Makes sure that the two tests above compare different verdicts.
#[test]
fn bare_commands_are_judged_by_their_kind() {
    use Verdict::{Allow, Ask, Deny};
    let expected = [
        [Deny, Deny, Deny],
        [Deny, Deny, Deny],
        [Deny, Deny, Deny],
        [Ask, Ask, Deny],
        [Ask, Ask, Deny],
        [Allow, Allow, Allow],
        [Allow, Allow, Allow],
        [Allow, Allow, Allow],
        [Allow, Allow, Allow],
        [Allow, Allow, Allow],
        [Ask, Allow, Allow],
        [Ask, Allow, Allow],
    ];
    for (bare, expected) in BARE.iter().zip(expected) {
        let actual = POLICIES.each_ref().map(|it| judged(bare, it).verdict);
        assert_eq!(actual, expected, "{bare}");
    }
}

fn fill(template: &str, bare: &str) -> String {
    template
        .replace('@', bare)
        .replace('\'', &quoted(&[bare.to_owned()]))
        // A quoted delimiter of a heredoc is written with quotes.
        .replace(&format!("{0}EOF{0}", quoted(&[bare.to_owned()])), "'EOF'")
}

/// Returns the command with its words quoted in all ways.
fn quotings(bare: &str) -> Vec<String> {
    let each = |quote: &dyn Fn(&str) -> String| {
        let words = words(bare);
        let quoted: Vec<String> = words.iter().map(|it| quote(it)).collect();
        quoted.join(" ")
    };
    vec![
        each(&|it| format!("'{it}'")),
        each(&|it| format!("\"{it}\"")),
        each(&|it| format!("\\{it}")),
        each(&|it| format!("{}''{}", &it[..1], &it[1..])),
        each(&|it| format!("{}\"\"{}", &it[..1], &it[1..])),
        each(&|it| format!("\"{}\"'{}'", &it[..1], &it[1..])),
        format!(
            "bash -c {}",
            quoted(&[format!("bash -c {}", quoted(&[bare.to_owned()]))])
        ),
        format!("bash -c \"{bare}\""),
        bare.replace(' ', "   "),
        bare.replace(' ', "\t"),
    ]
}
