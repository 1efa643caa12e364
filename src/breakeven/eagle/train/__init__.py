"""Trains a head on the states of a target: our own loop around the trainer library's model and losses.

config → model (the library's Eagle3DraftModel), split → order → documents (what it reads), objective (a
document's loss and acceptance), processes → stepping (one optimizer step, over all processes), checkpoint and
log (what outlives a kill), loop, run (the stage).

head.json is a configuration of the trainer's library (config.py says which), beside head.safetensors.

Only model, documents, objective, processes, stepping, checkpoint and loop load torch; the others import these
inside functions.
"""
