"""Runs on the host: standard library only, Python 3.6 syntax; its modules live in memory there."""
