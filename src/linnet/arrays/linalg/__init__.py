"""Linear algebra of lazy arrays."""
