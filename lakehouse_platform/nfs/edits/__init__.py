"""How what clients write becomes commits: drafts, checks, differences, publication."""
