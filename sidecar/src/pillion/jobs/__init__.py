"""Background work: bounded, resumable, and behind the store, never before it."""
