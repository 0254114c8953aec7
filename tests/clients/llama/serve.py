"""A llama.cpp server on loopback, with one model. Says in one line where it listens.

Usage: serve.py MODEL.gguf PORT
"""

import signal
import sys

import xllamacpp

#: Two slots share it. The client's thread and the one in which it asks for a title fit by far.
CONTEXT = 65536


def main():
    path, port = sys.argv[1:]
    settings = xllamacpp.CommonParams()
    settings.model.path = path
    settings.hostnames = ["127.0.0.1"]
    settings.port = int(port)
    settings.n_ctx = CONTEXT
    settings.n_parallel = 2
    settings.cpuparams.n_threads = 1
    settings.cpuparams_batch.n_threads = 1
    settings.use_jinja = True
    settings.warmup = False
    settings.endpoint_metrics = True
    # It serves on threads of its own, for as long as this is there.
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    signal.pause()


main()
