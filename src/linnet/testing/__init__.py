"""What others need to test their own parts against Linnet's protocols.

Each protocol has a suite of tests as a class: subclass it, give it a fixture that makes the
thing under test, and pytest runs the lot. Nothing here is imported by the rest of Linnet.
"""
