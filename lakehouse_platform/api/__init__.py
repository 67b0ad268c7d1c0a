"""The HTTP API: parse a request, call one service, send its answer."""
