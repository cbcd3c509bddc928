"""One host becomes events: connect, discover, tail, sample, ask health; on its own thread and loop."""
