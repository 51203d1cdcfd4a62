"""From an expression to a program that runs: fusion, live tiles, kept programs, evaluation."""
