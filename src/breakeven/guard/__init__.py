"""Guard: speculation, decided step by step, that cannot cost a request more than a set share of its speed.

settings      what a user may set
reasons       why a step drafts for a request, or does not
survival      how likely the next draft token is accepted, counted over requests
policy        which draft tokens a batch verifies: they must pay, and every request's ledger must bear them
charge        what a drafted step is charged, once it is known how long it took
known_times   what a step takes, where it is known; live_cost: learned from the server's own steps
match_index   the longest match of a growing context
simulate      all of it on recorded tokens, beside fixed settings
vllm          all of it in a vLLM server; with metrics and kill_switch

The policy and what it counts know no clock, no engine and no file.
"""
