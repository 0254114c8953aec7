"""A llama.cpp server on loopback, with one model. Prints its address in one line.

Usage: serve.py MODEL.gguf PORT
"""

import signal
import sys

import xllamacpp

#: Two slots share it. The client's thread and the one for a title need far less.
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
    # It serves on its own threads, as long as this object exists.
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    signal.pause()


main()
