"""What each server's log says: one TOML grammar per engine, each rule with lines it must match."""
