"""What the tests stand on: servers, worker processes, tables written by hand."""
