"""Simulate: what a guard would have gained and risked on recorded tokens, beside what else there is.

records      what a simulation holds
looked       the record, with the longest match at every output position
times        what a step takes by the draft tokens in it
played       one policy's steps on the record → its speedups, its worst request
fixed        every fixed window and n-gram range of a grid, by replay
oracle       perfect windows
test_and_set windows by trial, after Cascade's description
guarded      the guard, request after request; batched: several at a time, through the policy itself
run          all of them on one record

Every policy emits the recorded tokens, so what differs is the time of its steps. It is in plain steps of
as many sequences: a speedup is plain steps / time.
"""
