"""Who may come in and what they may do: passwords, tokens, users, sessions, permissions and limits."""
