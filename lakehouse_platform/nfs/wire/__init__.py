"""Codecs of the wire: XDR, record marking, ONC RPC, NFS, MOUNT and port mapper messages. Pure."""
