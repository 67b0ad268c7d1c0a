"""Many processes on one table: nothing is lost, nothing is doubled, every refusal is typed."""
