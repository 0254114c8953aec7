//! Tricks that were played on others: what looks harmless, or like the first of a chain, and is not.

use raddle_core::ApprovalPolicy;
use raddle_core::policy::Verdict;

use super::judged;

/// Nobody may run these unasked where only what is known is trusted.
const NOT_HARMLESS: &[&str] = &[
    "rg --pre ./x TODO",
    "rg --pre=./x TODO",
    "rg --hostname-bin ./x TODO",
    "rg -z TODO",
    "rg --search-zip TODO",
    "git -c core.pager=./x log",
    "git -c core.fsmonitor=./x status",
    "git --exec-path=. status",
    "git -C elsewhere status",
    "git diff --output=x",
    "git diff --outp=x",
    "git diff --ext-diff",
    "git log --output x",
    "git show --textconv x",
    "git grep -O./x TODO",
    "git grep --open-files-in-pager=./x TODO",
    "git branch new",
    "git branch -D old",
    "git remote add a b",
    "git cat-file --textconv HEAD:x",
    "find . -delete",
    "find . -exec ls {} +",
    "find . -ok ls ';'",
    "find . -fprint x",
    "find . -fprintf x y",
    "find . -fls x",
    "fd -x ls",
    "fd --exec ls",
    "sed -n 1w x",
    "sed -i s/a/b/ x",
    "sed -n 1e x",
    "sed -n -e 1p -i x",
    "sed -n 1,5p -i x",
    "sed s/a/b/e x",
    "sort -o x y",
    "sort --output=x y",
    "sort --compress-program=./x y",
    "uniq a b",
    "tree -o x",
    "base64 -o x",
    "xxd -r a b",
    "date -s 12:00",
    "printf -v PATH %s .",
    "test -v 'a[$(x)]'",
    "./ls",
    "/tmp/ls",
    "bin/git status",
    "PATH=. ls",
    "GIT_EXTERNAL_DIFF=./x git diff",
    "env PATH=. ls",
    "ls > x",
    "ls >> x",
    "cat < x",
    "ls *.rs",
    "rg TODO *",
    "ls ~",
    "ls $HOME",
    "ls $(pwd)",
    "ls `pwd`",
    "ls {a,b}",
    "ls $'a'",
    "ls & cat x",
    "ls() { cat; }; ls",
    "alias ls=cat; ls",
    "eval ls",
    "source x",
    ". x",
    "bash x",
    "bash",
    "ls | bash",
    "sudo ls",
    "xargs ls",
    "export PATH=.; ls",
    "set -x; ls",
    "trap ls EXIT; ls",
    "hash -p ./x ls; ls",
    "enable -f ./x ls; ls",
    "command -- ls; PATH=.",
    "ls\u{a0}x",
    "ls\rx",
    "ls\u{0}x",
    "ls \\",
    "ls 'x",
    "ls (",
    "awk 1 x",
    "python3 -c 1",
    "tail x | tee y",
    "echo x | sh",
    "cargo test --config x; ./y",
    "cargo test && ./x",
    "cargo test | ./x",
    "cargo test\n./x",
    "cargo test; $X",
];

/// Somewhere in these a forbidden `rm` stands.
const FORBIDDEN: &[&str] = &[
    "ls; rm x",
    "ls && rm x",
    "ls || rm x",
    "ls | rm x",
    "ls & rm x",
    "ls\nrm x",
    "ls\n\\rm x",
    "ls | cat\nrm > x",
    "ls | cat\nrm < x",
    "ls\n  \\rm x",
    "ls $(rm x)",
    "ls `rm x`",
    "ls \"$(rm x)\"",
    "ls <(rm x)",
    "cat <<EOF\n`rm x`\nEOF",
    "bash <<< 'rm x'",
    "$'\\x72\\x6d' x",
    "$'\\162m' x",
    "$'r\\u006d' x",
    "r\"m\" x",
    "r''m x",
    "\\rm x",
    "RM x",
    "/bin/rm x",
    "../../bin/rm x",
    "A=1 B=2 rm x",
    "PATH=. rm x",
    "alias ls=rm; rm x",
    "rm() { ls; }; rm x",
    "eval \"eval 'rm x'\"",
    "2>/dev/null rm x",
    "> a rm x",
    "ls > a; rm x",
    "# \\\nrm x",
    "r\\\nm x",
    "exec -a ls rm x",
    "find . -type f -exec sh -c 'rm \"$1\"' _ {} ';'",
    "xargs -I{} sh -c 'rm {}'",
    "time -f %e rm x",
    "git submodule foreach 'rm x'",
    "echo a; (echo b; (echo c; { rm x; }))",
];

/// What these run is not known before, so a rule might forbid it.
const DOUBTFUL: &[&str] = &[
    "$X x",
    "$(echo rm) x",
    "`echo rm` x",
    "r$X x",
    "\"$X\" x",
    "${X} x",
    "r?m x",
    "{rm,x}",
    "bash -c \"$X\"",
    "eval $X",
    "echo rm x | sh",
    "curlx x | bash -s",
    "ls 'x",
    "ls (",
    "git $X",
    "git pu${X}sh",
    "$X",
];

#[test]
fn what_may_do_more_is_asked_about() {
    for line in NOT_HARMLESS {
        let ruling = judged(line, &ApprovalPolicy::Untrusted);
        assert_ne!(ruling.verdict, Verdict::Allow, "{line:?}: {ruling:?}");
    }
}

#[test]
fn what_is_forbidden_is_found_wherever_it_stands() {
    for line in FORBIDDEN {
        for approval in &super::POLICIES {
            let ruling = judged(line, approval);
            assert_eq!(ruling.verdict, Verdict::Deny, "{line:?}: {ruling:?}");
            assert_eq!(ruling.rule, "command rm", "{line:?}");
        }
    }
}

#[test]
fn what_might_be_forbidden_is_asked_about() {
    for line in DOUBTFUL {
        let ruling = judged(line, &ApprovalPolicy::OnRequest);
        assert_eq!(ruling.verdict, Verdict::Ask, "{line:?}: {ruling:?}");
        let ruling = judged(line, &ApprovalPolicy::Never);
        assert_eq!(ruling.verdict, Verdict::Deny, "{line:?}: {ruling:?}");
    }
}
