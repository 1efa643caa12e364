"""Drafters: what each engine's lookup drafter proposes, token for token. One file per drafter."""
