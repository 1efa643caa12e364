"""Diagnose: what a server, its log and its runs say of speculation, and the causes that follow from it."""
