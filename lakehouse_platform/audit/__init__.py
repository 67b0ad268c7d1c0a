"""The audit log: who did what, durable when acknowledged, chained so that any change shows."""
