"""Reads the server's messages about a thread from the record, in order."""

from harness import require, require_equal
from model_script import ANSWER, INPUT_TOKENS, OUTPUT_TOKENS

_BEGUN = ["answer to thread/start", "thread/started"]
_SETTINGS = "thread/settings/updated"
_DELTA = "item/agentMessage/delta"
#: Requests about a thread whose responses are part of the order.
_ACTS = [
    "turn/start",
    "turn/steer",
    "turn/interrupt",
    "thread/compact/start",
    "thread/shellCommand",
    "thread/name/set",
    "review/start",
]
_TURN = [
    "thread/status/changed active",
    "turn/started inProgress",
    "item/started userMessage",
    "item/completed userMessage",
    "item/started agentMessage",
    _DELTA,
    "item/completed agentMessage",
    "thread/tokenUsage/updated",
    "thread/status/changed idle",
    "turn/completed completed",
]


class Told:
    """All messages of the server about one thread."""

    def __init__(self, record, thread):
        self.messages = []
        self.words = []
        for message, request in record.told():
            word = _answer(thread, message, request) or _notification(thread, message)
            # Deltas of any size count as one entry.
            if word and not (word.lower().endswith("delta") and self.words[-1:] == [word]):
                self.words.append(word)
            if word:
                self.messages.append(message)

    def require_turns(self, prompts, settings_change=False, cut=False):
        """Checks a thread with one turn for each prompt, and nothing else.

        `settings_change`: the first turn has its own settings. `cut`: the client did not wait for the
        end, so the end may be missing, but the rest is checked.
        """
        expected = list(_BEGUN)
        for at in range(len(prompts)):
            change = [_SETTINGS] if settings_change and at == 0 else []
            expected += ["answer to turn/start", *change, *_TURN]
        if cut:
            expected = expected[: len(self.words)]
        require_equal("the messages about the thread", self.words, expected)
        self._require_no_numbers()
        if not cut:
            self._require_texts(prompts)

    def require_end(self, expected):
        """Checks the last messages, and that every started item was completed before its turn."""
        require_equal("the last messages of the thread", self.words[-len(expected) :], expected)
        self._require_no_numbers()
        open_items = set()
        for message in self.messages:
            match message:
                case {"method": "item/started", "params": {"item": {"id": item}}}:
                    open_items.add(item)
                case {"method": "item/completed", "params": {"item": {"id": item}}}:
                    open_items.remove(item)
                case {"method": "turn/completed"}:
                    require_equal("the items that were left open", open_items, set())

    def items(self, kind):
        """Returns the completed items of one type."""
        params = [it["params"] for it in self.messages if it.get("method") == "item/completed"]
        return [it["item"] for it in params if it["item"]["type"] == kind]

    def _require_no_numbers(self):
        """Checks that there is no `seq`, which stock clients do not request."""
        for message in self.messages:
            require("seq" not in message, f"{message.get('method')} has a seq")

    def _require_texts(self, prompts):
        turns = [it["result"]["turn"]["id"] for it in self.messages if _has_turn(it)]
        require_equal("the number of distinct turns", len(set(turns)), len(prompts))
        for at, (turn, prompt) in enumerate(zip(turns, prompts)):
            said = self._of(turn, "item/completed")
            user, agent = (message["item"] for message in said)
            texts = [part["text"] for part in user["content"]]
            require_equal("the user's message", texts, [prompt])
            require_equal("the agent's message", agent["text"], ANSWER)
            deltas = self._of(turn, _DELTA)
            require_equal("the deltas", "".join(it["delta"] for it in deltas), ANSWER)
            require_equal("their item", {it["itemId"] for it in deltas}, {agent["id"]})
            (usage,) = (it["tokenUsage"] for it in self._of(turn, "thread/tokenUsage/updated"))
            require_equal("the turn's tokens", _tokens(usage["last"]), _expected_tokens(1))
            require_equal("all tokens", _tokens(usage["total"]), _expected_tokens(at + 1))
            for method in ("turn/started", "turn/completed"):
                require_equal(f"how often {method} came", len(self._of(turn, method)), 1)

    def _of(self, turn, method):
        """Returns the params of a turn's notifications of one method."""
        found = [it["params"] for it in self.messages if it.get("method") == method]
        return [it for it in found if turn in (it.get("turnId"), it.get("turn", {}).get("id"))]


def _answer(thread, message, request):
    result = message.get("result") or {}
    match request:
        case {"method": "thread/start"} if result.get("thread", {}).get("id") == thread:
            return "answer to thread/start"
        case {"method": method, "params": {"threadId": of}} if method in _ACTS and of == thread:
            return f"answer to {method}"
    return None


def _notification(thread, message):
    params = message.get("params", {})
    if thread not in (params.get("threadId"), params.get("thread", {}).get("id")):
        return None
    match params:
        case {"status": {"type": "active", "activeFlags": [flag]}}:
            return f"{message['method']} {flag}"
        case {"status": {"type": detail}} | {"turn": {"status": detail}}:
            return f"{message['method']} {detail}"
        case {"item": {"type": detail}}:
            return f"{message['method']} {detail}"
    return message["method"]


def _has_turn(message):
    return "turn" in (message.get("result") or {})


def _tokens(usage):
    return [usage["inputTokens"], usage["outputTokens"], usage["totalTokens"]]


def _expected_tokens(turns):
    both = INPUT_TOKENS + OUTPUT_TOKENS
    return [turns * INPUT_TOKENS, turns * OUTPUT_TOKENS, turns * both]
