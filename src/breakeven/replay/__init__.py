"""Replay: what a drafter would have drafted on recorded tokens, and how much would have been accepted.

Recorded requests flow from a source (a run, a file) in batches through the steps of a drafter to an
Acceptance: on one core, on all of them, or on a Ray cluster. A sweep does it for many settings at once.
"""
