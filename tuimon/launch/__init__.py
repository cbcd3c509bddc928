"""What we believe about one launch. Pure: no I/O, no clock of its own, no Textual, no asyncssh."""
