"""States: what the target's layers pass on at every token of the samples, as a head will read it.

The data's samples → shards planned from their lengths alone (plan.py) → the target's passes, by
transformers (loaded.py) or by a vLLM server (served.py, flags.py), as passes.py has them → shard files with
checksums (shards.py), which train and evaluate read (held.py). target.py finds in the checkpoint what they
need of the target besides, and target_head.py computes with it; run.py is the stage.

A shard is made whole or again. What is in it depends on the plan and not on which call made it, so that
an interrupted run ends with the same bytes as one that was let be.

plan, shards and flags load no torch; no other module of the package imports the rest but inside a function.
"""
