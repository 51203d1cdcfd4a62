"""The kinds of store, one module each; `linnet.workers.store` says what they have in common."""
