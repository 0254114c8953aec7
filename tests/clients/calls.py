"""Reads a client's requests from the record."""

from harness import METHOD_NOT_FOUND, require, require_equal

THREAD_START = "thread/start"


def require_calls(record, needed, spared=(), cut_after=None):
    """Checks that each request has one response: a result, or -32601 if the client does not need it.

    `needed` must have a result before the first thread, in order. `spared` are exactly the requests that
    are not served yet: one more, one less or one that is served fails the check.
    A client may disconnect without waiting for its requests after the first `cut_after`.
    Returns all calls, and those before the first thread.
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
        require_equal(f"the number of responses to {call.method}", len(call.answers), 1)
        if call.error_code is None:
            require(isinstance(call.result, dict), f"{call.method} returned {call.answers[0]}")
        else:
            require(call.method in spared, f"the response to {call.method} was {call.answers[0]}")
            require_equal(f"the error of {call.method}", call.error_code, METHOD_NOT_FOUND)
            refused.add(call.method)
    require_equal("the requests that are not served", sorted(refused), sorted(spared))
    before = calls[: methods.index(THREAD_START)]
    require_in_order([call.method for call in before], needed)
    require_equal("frames that are not messages", record.oddities, [])
    return calls, before


def require_answered(record, spared=(), refused=()):
    """Checks that each request has one response: a result, or -32601 if the client does not need it.

    `refused`: the message of an expected error.
    """
    for call in record.calls():
        require_equal(f"the number of responses to {call.method}", len(call.answers), 1)
        if call.error_code is not None and call.answers[0]["error"]["message"] not in refused:
            require(call.method in spared, f"the response to {call.method} was {call.answers[0]}")
            require_equal(f"the error of {call.method}", call.error_code, METHOD_NOT_FOUND)
    require_equal("frames that are not messages", record.oddities, [])


def require_threads(calls):
    """Checks that the client started the user's thread, and an ephemeral one for a title. Returns both."""
    starts = [call for call in calls if call.method == THREAD_START]
    ephemeral = [bool(call.params.get("ephemeral")) for call in starts]
    require_equal("which threads are ephemeral", ephemeral, [False, True])
    return starts


def require_in_order(found, expected):
    rest = iter(found)
    for method in expected:
        # Each `in` continues where the last one stopped.
        require(method in rest, f"expected {expected} in this order, found {found}")
