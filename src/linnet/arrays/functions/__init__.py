"""The functions of arrays, one file for each chapter."""
