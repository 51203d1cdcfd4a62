"""What every function of arrays stands on: indexing, assignment, element-wise work, shapes, reductions."""
