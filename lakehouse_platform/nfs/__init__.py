"""The mount: an NFSv3 server that shows tables as files and makes each edit one commit."""
