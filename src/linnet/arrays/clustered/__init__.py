"""Linear algebra of arrays on a cluster: tiles are factored where they lie, and factors stay there.

On an engine with nodes an array is not brought here to be factored. It is computed on the nodes, in tiles as
the algorithm wants them, and the result is an array of ours whose tiles are on the nodes as well; singular
values, eigenvalues, permutations and pivots come here. What is small, and a stack of matrices, goes the
other way: a function that has nothing to do with what it is given returns `NotImplemented`.
"""
