"""The demo's stand-in for the few functions of torch in which a rank waits."""
