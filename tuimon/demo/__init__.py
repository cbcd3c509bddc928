"""The demo's host and launch: real processes, a real log, simulated GPU readings."""
