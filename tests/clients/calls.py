"""Reads a client's requests off the record."""

from harness import METHOD_NOT_FOUND, require, require_equal

THREAD_START = "thread/start"


def require_calls(record, needed, spared=(), cut_after=None):
    """Each request was answered once: with a result, or with -32601 if the client can spare it.

    `needed` are those that must have a result before the first thread, in order. `spared` are those
    that are not served yet, all of them: one more, one less or one that is served is a surprise.
    A client may leave without waiting for its requests after the first `cut_after`.
    Gives all calls, and those before the first thread.
    """
    calls = record.calls()
    methods = [call.method for call in calls]
    require(THREAD_START in methods, f"thread/start was not reached; sent were {methods}")
    require_equal("the first request", methods[0], "initialize")
    settled = methods.index(cut_after) + 1 if cut_after else len(calls)
    refused = set()
    for at, call in enumerate(calls):
        if at >= settled and not call.answers:
            continue
        require_equal(f"how many answers {call.method} got", len(call.answers), 1)
        if call.error_code is None:
            require(isinstance(call.result, dict), f"{call.method} gave {call.answers[0]}")
        else:
            require(call.method in spared, f"{call.method} was answered with {call.answers[0]}")
            require_equal(f"the error of {call.method}", call.error_code, METHOD_NOT_FOUND)
            refused.add(call.method)
    require_equal("the requests that are not served", sorted(refused), sorted(spared))
    before = calls[: methods.index(THREAD_START)]
    require_in_order([call.method for call in before], needed)
    require_equal("what is no message", record.oddities, [])
    return calls, before


def require_answered(record, spared=(), refused=()):
    """Each request was answered once: with a result, or with -32601 if the client can spare it.

    `refused`: the words of an error that was meant to be.
    """
    for call in record.calls():
        require_equal(f"how many answers {call.method} got", len(call.answers), 1)
        if call.error_code is not None and call.answers[0]["error"]["message"] not in refused:
            require(call.method in spared, f"{call.method} was answered with {call.answers[0]}")
            require_equal(f"the error of {call.method}", call.error_code, METHOD_NOT_FOUND)
    require_equal("what is no message", record.oddities, [])


def require_threads(calls):
    """The client started the user's thread, and one for a title that is not kept. Gives both."""
    starts = [call for call in calls if call.method == THREAD_START]
    ephemeral = [bool(call.params.get("ephemeral")) for call in starts]
    require_equal("which threads are ephemeral", ephemeral, [False, True])
    return starts


def require_in_order(found, expected):
    rest = iter(found)
    for method in expected:
        # Each `in` reads on from where the last one stopped.
        require(method in rest, f"expected {expected} in this order, found {found}")
