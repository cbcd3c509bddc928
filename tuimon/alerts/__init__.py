"""What leaves tuimon when the verdict changes: a bell, a notification of the terminal, a command of the user."""
