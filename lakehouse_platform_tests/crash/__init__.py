"""A process is killed in the middle of a change: the table is readable and holds whole changes only."""
