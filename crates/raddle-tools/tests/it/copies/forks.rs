//! Forks with a copy of their own.

use super::check;

/// A fork with a copy of its own has the files from before the later turns. What the user changed since
/// stays, and the folder itself does not change.
#[test]
fn a_fork_has_the_files_of_its_time() {
    check(
        "
        > user echo 1 > a; echo 2 > b; echo 3 > c; mkdir d; printf x > run.sh
        > start one
        > turn one first echo one > a
        > turn one second echo two > a; echo two > b; rm c; mkdir -p d/new; echo x > d/new/f; chmod 755 run.sh
        > turn one third echo three > a; ln -s a link
        > user echo mine > b; echo mine > other
        > fork-copy two one second
        conflict b
        > run two cat a b c other; ls -d d/*; stat -c %a run.sh; ls
        one
        mine
        3
        mine
        644
        a
        b
        c
        d
        other
        run.sh
        > show cat a; ls
        three
        a
        b
        d
        link
        other
        run.sh
        > changes two
        Modified a
        Added c
        Deleted d/new/f
        Deleted link
        ModeChanged run.sh
        > fork-copy three one
        > run three cat a; ls d/new
        three
        f
        > changes three
        > undo one
        Changed a
        Deleted link
        ",
    );
}

/// The copy of a forked thread is copied with the changes that are not applied yet.
#[test]
fn a_fork_of_a_copy_has_a_copy_of_its_own() {
    check(
        "
        > user echo 1 > a; echo 2 > b
        > copy one
        > turn one first echo one > a; echo one > b
        > apply one
        Changed a
        Changed b
        > turn one second echo two > a; echo x > c
        > apply one a
        Changed a
        > turn one third rm b
        > fork-copy two one second
        > run two cat a b; ls
        one
        one
        a
        b
        > changes two
        Modified a
        > fork-copy three one
        > changes three
        Deleted b
        Added c
        overlap with one: b c
        > run three echo three > c
        > apply three
        Deleted b
        Created c
        > show cat a c; ls
        two
        three
        a
        c
        > undo one
        Changed a
        > changes three
        Modified a
        overlap with one: a
        > run two echo more > new
        > changes one
        Modified a
        Modified c
        conflict c
        overlap with three: a
        > changes two
        Added new
        ",
    );
}
