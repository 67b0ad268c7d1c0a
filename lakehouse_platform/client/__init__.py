"""Clients of the HTTP API, synchronous and asynchronous; they need nothing of the server."""
