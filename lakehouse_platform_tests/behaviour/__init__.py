"""What the store promises, told table by table; every test here runs on disk and on a real S3 server."""
