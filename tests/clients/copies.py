"""Threads that work in a copy of the workspace."""

import subprocess
from pathlib import Path

from harness import require, require_equal, run_client
from mock_model import MockModel, calls, says
from stdio_client import StdioClient
from terminal import Terminal


def on_the_command_line(bench):
    """`raddle exec --workspace copy` changes nothing in the folder before `raddle apply`."""
    work = bench.workspace
    (work / "a").write_text("1\n")
    (work / "b").write_text("2\n")
    script = f"pwd; echo one > a; rm b; mkdir new; echo x > new/c; echo no > {work}/outside"
    _model(bench, script, "mv b renamed")
    # The folders of this check are in /tmp, which commands may write by default.
    scratch = [f"-csandbox_workspace_write.exclude_{it}=true" for it in ("slash_tmp", "tmpdir_env_var")]
    command = [bench.raddle, "exec", *scratch, "--workspace", "copy", "-s", "workspace-write", "go"]
    code, out, err = run_client(bench, command, bench.environment())
    require_equal(f"the exit code ({err})", code, 0)
    require("the agent works in a copy; `raddle apply --thread " in err, f"it printed {err!r}")
    require_equal("the folder", _files(work), {"a": "1\n", "b": "2\n"})

    code, out, err = _raddle(bench, "apply", "--preview")
    require_equal(f"the exit code of the preview ({err})", code, 0)
    lines = [it for it in out.splitlines() if it[:1] in "+-" and it[:3] not in ("+++", "---")]
    require_equal("the diff", lines, ["-1", "+one", "-2", "+x"])
    code, out, err = _raddle(bench, "apply", "--yes", "a", "new/c")
    require_equal(f"the exit code ({err})", code, 0)
    require("applied 2 files" in err, f"it printed {err!r}")
    require_equal("the folder", _files(work), {"a": "one\n", "b": "2\n", "new/c": "x\n"})
    (work / "b").write_text("mine\n")
    code, out, err = _raddle(bench, "apply", "--yes")
    require_equal("the exit code with a conflict", code, 1)
    require("conflict: b stays as it is" in out + err, f"it printed {out!r} and {err!r}")
    code, out, err = _raddle(bench, "apply", "--yes", "--overwrite", "b")
    require_equal(f"the exit code ({err})", code, 0)
    require_equal("the folder", _files(work), {"a": "one\n", "new/c": "x\n"})
    code, out, err = _raddle(bench, "apply", "--yes")
    require_equal("the exit code without changes", code, 1)
    require("nothing to apply" in err, f"it printed {err!r}")
    for expected in ({"a": "one\n", "b": "mine\n", "new/c": "x\n"}, {"a": "1\n", "b": "mine\n"}):
        code, out, err = _raddle(bench, "apply", "--undo")
        require_equal(f"the exit code of the undo ({out} {err})", code, 0)
        require_equal("the folder after the undo", _files(work), expected)
    # The user reverses an apply by hand, so there is nothing to undo.
    code, out, err = _raddle(bench, "apply", "--yes", "a")
    require_equal(f"the exit code ({err})", code, 0)
    (work / "a").write_text("1\n")
    code, out, err = _raddle(bench, "apply", "--undo")
    require_equal("the exit code without an apply to undo", code, 1)
    require("there is nothing applied" in err, f"it printed {err!r}")

    # Of a renamed file, the old path is in conflict.
    code, out, err = run_client(bench, command, bench.environment())
    require_equal(f"the exit code ({err})", code, 0)
    (work / "b").write_text("mine, later\n")
    code, out, err = _raddle(bench, "apply", "--yes", "--overwrite", "b")
    require_equal(f"the exit code ({out} {err})", code, 0)
    require_equal("the folder", _files(work), {"a": "1\n", "renamed": "mine\n"})


def on_a_terminal(bench):
    """`raddle apply` asks about each hunk, and splits one."""
    numbers = bench.workspace / "numbers"
    numbers.write_text("".join(f"{it}\n" for it in range(1, 31)))
    (bench.workspace / "image").write_bytes(b"\0\1")
    edits = "-e 's/^3$/three/' -e 's/^15$/fifteen/' -e 's/^17$/seventeen/' -e 's/^28$/last/'"
    _model(bench, f"sed -i {edits} numbers; printf '\\0\\2' > image")
    command = [bench.raddle, "exec", "--workspace", "copy", "-s", "workspace-write", "go"]
    code, out, err = run_client(bench, command, bench.environment())
    require_equal(f"the exit code ({err})", code, 0)
    terminal = Terminal(bench, [bench.raddle, "apply"], bench.environment())
    terminal.wait_for("apply 2 files? [y/N/h]")
    terminal.enter("h")
    for place, answer in (
        ("hunk 1 of 4, line 1 of image", "n"),
        ("hunk 2 of 4, line 3 of numbers", "y"),
        ("hunk 3 of 4, line 15 of numbers", "s"),
        ("hunk 3 of 5, line 15 of numbers", "maybe"),
        ("There is no such answer", "n"),
        ("hunk 4 of 5, line 17 of numbers", "y"),
        ("hunk 5 of 5, line 28 of numbers", "d"),
    ):
        terminal.wait_for(place)
        terminal.enter(answer)
    terminal.wait_for("applied 1 file")
    terminal.wait_for_end()
    changed = {3: "three", 17: "seventeen"}
    expected = "".join(f"{changed.get(it, it)}\n" for it in range(1, 31))
    require_equal("the file", numbers.read_text(), expected)
    require_equal("the image", (bench.workspace / "image").read_bytes(), b"\0\1")
    # What was left out is not in conflict.
    code, out, err = _raddle(bench, "apply", "--yes")
    require_equal(f"the exit code of the rest ({out} {err})", code, 0)
    require("fifteen\n" in numbers.read_text(), "the rest was not applied")


def of_a_client(bench):
    """A client that names the folder with each turn stays in the copy; undo, delete and a read-only sandbox."""
    work = bench.workspace
    (work / "a").write_text("1\n")
    model = _model(bench, "pwd; echo one > a", "cat a; pwd")
    client = _Client(bench)
    started = client.call("thread/start", {"cwd": str(work), "workspace": "copy"})
    client.thread = started["thread"]["id"]
    copy = started["cwd"]
    require(copy != str(work) and copy.endswith(f"/{work.name}"), f"the copy is {copy}")
    roots = {"type": "workspaceWrite", "writableRoots": [str(work)], "networkAccess": False}
    client.turn("go", cwd=str(work), sandboxPolicy=roots)
    require(copy in model.given()[-1], f"the model read {model.given()[-1]!r}")
    require_equal("the file", (work / "a").read_text(), "1\n")
    client.turn("go", sandboxPolicy={"type": "readOnly"})
    read = model.given()[-1]
    require("one" in read and copy in read, f"in a read-only sandbox the model read {read!r}")

    done = client.call("thread/workspace/apply", {"threadId": client.thread})
    require_equal("the applied files", done["applied"], [{"path": "a", "effect": "changed"}])
    require_equal("the file", (work / "a").read_text(), "one\n")
    restore = {"threadId": client.thread, "checkpointId": done["checkpointId"], "what": "files"}
    client.call("thread/checkpoint/restore", restore)
    require_equal("the file after the undo", (work / "a").read_text(), "1\n")
    read = client.call("thread/workspace/read", {"threadId": client.thread})
    require_equal("the changes after the undo", [it["path"] for it in read["diff"]["files"]], ["a"])

    # A fork works in the same copy, also where its client names the folder.
    forked = client.call("thread/fork", {"threadId": client.thread})
    fork = forked["thread"]["id"]
    require_equal("the folder of the fork", forked["cwd"], copy)
    client.call("thread/settings/update", {"threadId": fork, "cwd": str(work)})
    read = client.call("thread/workspace/read", {"threadId": fork})
    require_equal("the changes of the fork", [it["path"] for it in read["diff"]["files"]], ["a"])
    resumed = client.call("thread/resume", {"threadId": fork})
    require_equal("the folder of the resumed fork", resumed["cwd"], copy)

    # A copy outlives its threads.
    for thread in (fork, client.thread):
        client.call("thread/delete", {"threadId": thread})
    client.leave()
    require_equal("the copy", _files(Path(copy)), {"a": "one\n"})
    code, out, err = _raddle(bench, "gc")
    require_equal(f"the exit code of gc ({err})", code, 0)
    require(f"  {Path(copy).parent}\n" in out, f"gc printed {out!r} and {err!r}")


def reviewed(bench):
    """A turn builds and tests in the copy; a part of it is accepted, and nothing else in the folder changes."""
    work = bench.workspace
    _run(work, "git init -q . && git config user.name me && git config user.email me@example.org")
    (work / "sub").mkdir()
    (work / "sub/words.py").write_text("".join(f"word_{it} = {it}\n" for it in range(30)))
    (work / "main.py").write_text("import sub.words\nprint(sub.words.word_3)\n")
    (work / "test.py").write_text("import sub.words\nassert sub.words.word_3 + sub.words.word_25 == 68\n")
    (work / ".gitignore").write_text("__pycache__/\nbuild/\n")
    (work / "notes").write_text("mine\n")
    _run(work, "git add -A && git commit -qm one")
    before = _state(work)
    script = (
        "sed -i -e 's/^word_3 = .*/word_3 = 33/' -e 's/^word_25 = .*/word_25 = 35/' sub/words.py"
        " && echo more >> notes && mkdir -p build && python3 -m compileall -q . && python3 test.py > build/out"
        " && git commit -qam two && git log --oneline | wc -l"
    )
    model = _model(bench, script)
    client = StdioClient(bench)
    started = client.call("thread/start", {"cwd": str(work), "workspace": "copy"})
    client.thread = started["thread"]["id"]
    client.turn("go")
    require(model.given()[-1].strip().endswith("2"), f"the model read {model.given()[-1]!r}")
    require_equal("what changed before the review", _changed(before, _state(work)), set())

    thread = {"threadId": client.thread}
    files = client.call("thread/workspace/read", thread)["diff"]["files"]
    require_equal("the changed files", [it["path"] for it in files], ["notes", "sub/words.py"])
    first, _ = files[1]["hunks"]
    accepted = {"path": "sub/words.py", "hunks": [{"id": first["id"]}]}
    done = client.call("thread/workspace/apply", {**thread, "files": [accepted]})
    require_equal("the applied files", done["applied"], [{"path": "sub/words.py", "effect": "changed"}])
    # A file is replaced whole, and staged at the top: both change the time of a folder.
    require_equal("what changed", _changed(before, _state(work)), {".", "sub", "sub/words.py"})
    words = (work / "sub/words.py").read_text()
    require("word_3 = 33\n" in words and "word_25 = 25\n" in words, f"the file has {words!r}")
    # The commits of the agent can be fetched.
    _run(work, f"git fetch -q '{started['cwd']}' HEAD && git log --format=%s -1 FETCH_HEAD | grep -qx two")
    client.leave()


def of_a_fork(bench):
    """A fork gets a copy of its own, in which the files are as at the end of its history."""
    work = bench.workspace
    (work / "a").write_text("1\n")
    model = _model(bench, "echo one > a", "echo two > a; echo b > b", "echo three > a; cat a; pwd")
    client = _Client(bench)
    client.thread = client.call("thread/start", {"cwd": str(work)})["thread"]["id"]
    client.turn("go")
    client.turn("go")
    read = client.call("thread/read", {"threadId": client.thread, "includeTurns": True})
    first = read["thread"]["turns"][0]["id"]
    (work / "mine").write_text("mine\n")
    after_first = {"threadId": client.thread, "lastTurnId": first, "workspace": "copy"}
    forked = client.call("thread/fork", after_first)
    copy = Path(forked["cwd"])
    require_equal("the copy", _files(copy), {"a": "one\n", "mine": "mine\n"})
    require_equal("the folder", _files(work), {"a": "two\n", "b": "b\n", "mine": "mine\n"})
    require("workspaceConflicts" not in forked, f"the answer is {forked}")

    # The fork stays in its copy, and its changes replace those of the later turn.
    client.thread = forked["thread"]["id"]
    client.turn("go", cwd=str(work))
    require(str(copy) in model.given()[-1], f"the model read {model.given()[-1]!r}")
    client.call("thread/workspace/apply", {"threadId": client.thread})
    require_equal("the folder", _files(work), {"a": "three\n", "mine": "mine\n"})

    # A fork of the fork copies the copy, with the changes that are not applied yet.
    (copy / "c").write_text("c\n")
    before = {"threadId": client.thread, "beforeTurnId": first, "workspace": "copy"}
    error = client.error("thread/fork", before)
    require("checkpoint" in error["message"], f"a turn of another thread was reversed: {error}")
    other = client.call("thread/fork", {"threadId": client.thread, "workspace": "copy"})
    require(other["cwd"] not in (str(copy), str(work)), f"the fork works in {other['cwd']}")
    require_equal("the other copy", _files(Path(other["cwd"])), {**_files(work), "c": "c\n"})
    read = client.call("thread/workspace/read", {"threadId": other["thread"]["id"]})
    require_equal("the origin", read["origin"], str(work))
    require_equal("its changes", [it["path"] for it in read["diff"]["files"]], ["c"])
    client.leave()


class _Client(StdioClient):
    capabilities = {"experimentalApi": True}


def _run(folder, script):
    subprocess.run(["sh", "-ec", script], cwd=folder, check=True)


def _state(folder):
    """Returns kind, mode, times and content of all files and folders, by path."""
    return {str(it.relative_to(folder)): _entry(it) for it in [folder, *folder.rglob("*")]}


def _entry(path):
    stat = path.lstat()
    content = path.read_bytes() if path.is_file() else None
    return (stat.st_mode, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns, content)


def _changed(before, after):
    return {it for it in before.keys() | after.keys() if before.get(it) != after.get(it)}


def _model(bench, *scripts):
    answers = []
    for script in scripts:
        answers += [(None, [calls("exec_command", {"cmd": script})]), (None, says("done"))]
    model = MockModel(bench, answers)
    model.configure(bench, approval_policy="never", sandbox_mode="workspace-write")
    return model


def _raddle(bench, *words):
    return run_client(bench, [bench.raddle, *words], bench.environment())


def _files(folder):
    files = (it for it in folder.rglob("*") if it.is_file())
    return {str(it.relative_to(folder)): it.read_text() for it in files}


CHECKS = {
    "copies-terminal": on_a_terminal,
    "copies-exec": on_the_command_line,
    "copies-client": of_a_client,
    "copies-review": reviewed,
    "copies-fork": of_a_fork,
}
