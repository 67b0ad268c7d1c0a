"""The mount through a real Linux kernel client."""
