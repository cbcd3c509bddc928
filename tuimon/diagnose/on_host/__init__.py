"""Programs that run on the host, sent over stdin: standard library only, Python 3.6 syntax, nothing left behind."""
