"""Checks that run inside the guest, on its own minimal Python: standard library only."""
