"""Arrays in files, read and written tile by tile; and arrays as data."""
