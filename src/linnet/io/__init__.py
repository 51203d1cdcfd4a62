"""Files and objects: formats as readers and writers of blocks, which know nothing of arrays.

Each format says what a file holds without reading its data (`describe`), and reads or writes the
block of a tile from words and numbers alone. Libraries of formats are imported when they are needed.
"""
