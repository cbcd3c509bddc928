"""The same judgement without a screen: JSON on stdout, words on stderr, exit codes."""
