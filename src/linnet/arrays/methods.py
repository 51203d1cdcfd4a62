"""Methods of arrays that chapters define: their types are in the stub beside this file."""


class Methods:
    """What the class of arrays stands on; `array` gives it the methods of all chapters."""

    __slots__ = ()
