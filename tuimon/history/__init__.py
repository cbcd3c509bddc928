"""What tuimon remembers of past launches: one SQLite file in the state folder."""
