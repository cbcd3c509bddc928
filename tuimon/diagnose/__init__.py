"""From "it hangs" to "rank 3 waits here": actions that look deeper."""
