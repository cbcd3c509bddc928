"""`python -m tuimon` where the console script is not on PATH."""

from tuimon.cli import main

main()
