"""What maintenance is due, and its tasks."""
