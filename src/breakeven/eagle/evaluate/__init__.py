"""Evaluate: how far the drafts of a trained head would pass, on held-out replies that the target wrote.

replies.py: what is evaluated → drafting.py: the head's chains at every token of a reply, by the target's
states (states/held.py) and what is kept of the target (held_target.py), counted by drafted.py → journal.py: a
line for each reply, a record that replay and forecast read → part.py: acceptance by position with intervals →
rivals.py: drafters without training on the same replies, and what a choice for each reply would gain →
run.py: the stage.

At temperature 0 a chain is fed with the same tokens, the reply's or its own, up to its first wrong draft, and
is dropped after it: chains fed with the reply's tokens (teacher-forced) show what a server would accept. What
differs is where chains begin: at every token of the reply, or where a server's steps fall.

Only drafting.py and held_target.py load torch; run.py imports them inside a function.
"""
