"""Benchmarks: the store against the raw libraries, in pairs and in one run (`python -m bench --help`)."""
