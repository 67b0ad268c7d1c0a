"""Values that every layer may know: names, origins, times, results and schemas."""
