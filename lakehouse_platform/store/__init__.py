"""The only home of deltalake and datafusion: a snapshot in, one commit out."""
