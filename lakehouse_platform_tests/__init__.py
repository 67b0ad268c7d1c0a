"""The tests, cut like the package they test, and the campaigns that run for longer than CI does."""
