"""Streams a turn of the mock model, kills the server at an approval, continues on another. Argument: path of raddle."""
import json, sys
from subprocess import PIPE, Popen

PROMPT = 'MOCK text n=20 gap_ms=50 call name=exec_command arguments={"cmd": "touch woven"}'

class Server:
    def __init__(self):  # By default a server on stdio interrupts the turn of a killed one.
        options = ["-c", "model=mock/mock", "--recovery", "continue"]
        self.process = Popen([sys.argv[1], "app-server", *options], stdin=PIPE, stdout=PIPE, text=True)
        self.call("initialize", clientInfo={"name": "client", "version": "1"})

    def send(self, **message):
        print(json.dumps(message), file=self.process.stdin, flush=True)

    def call(self, method, **params):
        self.send(id=method, method=method, params=params)
        return self.read_until("id", method)["result"]

    def read_until(self, member, value):
        for message in map(json.loads, self.process.stdout):
            match message:
                case {"error": error}: sys.exit(error["message"])
                case _ if message.get(member) == value: return message
                case {"method": "item/agentMessage/delta", "params": {"delta": text}}: print(text, end="", flush=True)
                case {"id": request, "method": method, "params": params}:
                    print(f"{params.get('command') or method}? [y/N] ", end="", flush=True)
                    decision = "accept" if sys.stdin.readline().strip() == "y" else "decline"
                    self.send(id=request, result={"decision": decision})
        sys.exit("the server exited; its last message on stderr says why")

server = Server()
thread = server.call("thread/start", approvalPolicy="untrusted", sandbox="workspace-write")["thread"]["id"]
server.call("turn/start", threadId=thread, input=[{"type": "text", "text": PROMPT}])
request = server.read_until("method", "item/commandExecution/requestApproval")
server.process.kill()
print(f"\nThe server was killed, and {request['params']['command']} waits for approval.")
server = Server()
server.call("thread/resume", threadId=thread)
print("\n" + server.read_until("method", "turn/completed")["params"]["turn"]["status"])
