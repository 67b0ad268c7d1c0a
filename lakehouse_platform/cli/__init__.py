"""The `lakehouse` command: parse, call one service, print."""
