"""Explain: two measured speeds, taken apart into what the model of a step explains and what it does not."""
