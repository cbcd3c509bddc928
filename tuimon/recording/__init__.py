"""Events written down and read again."""
