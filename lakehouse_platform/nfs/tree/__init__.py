"""What clients see: directories, views of tables rendered from their data files, and scratch files."""
