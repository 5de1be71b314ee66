"""Runs llama.cpp's HTTP server with a model on a free port of this machine, and prints the port. Argument: MODEL.

It ends when its standard input closes, so that it never outlives the test that started it.
"""
import sys

import xllamacpp

SLOTS, CONTEXT_OF_A_SLOT = 2, 32_768

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.model_alias = {"tiny"}
parameters.n_parallel = SLOTS
parameters.n_ctx = SLOTS * CONTEXT_OF_A_SLOT
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
parameters.port = 0
parameters.endpoint_slots = True
parameters.endpoint_metrics = True
parameters.offline = True
server = xllamacpp.Server(parameters)
print("listening", server.listening_address, flush=True)
sys.stdin.read()
