"""Real servers for tests, one module a kind.

Each is a class whose object owns one server on 127.0.0.1: a free port, a folder of its own, started by
`with` (which waits until the server answers) and stopped by its process id. The fixtures in
`tests/conftest.py` start one of each kind in a run, when a test first asks for it.
"""
