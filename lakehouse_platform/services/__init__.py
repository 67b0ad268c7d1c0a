"""Use cases: the only thing that front ends call."""
