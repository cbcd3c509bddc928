"""Where ranks wait for each other."""
