"""Calls a Python function by its import name with the parameters of a job; what it returns is the result.

Run by its path on a server, with nothing but Python's own library: `call.py module:function`. Parameters are
in
the variable LINNET_PARAMETERS, as JSON; the result goes to the file that LINNET_RESULT names.
"""

# pyright: basic

import importlib
import json
import os
import sys
from typing import Any


def main():
    module, _, name = sys.argv[1].partition(":")
    sys.path[0] = os.environ.get("LINNET_PATH", "").split(os.pathsep)[0] or os.getcwd()
    for place in os.environ.get("LINNET_PATH", "").split(os.pathsep)[1:]:
        if place and place not in sys.path:
            sys.path.append(place)
    function: Any = importlib.import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    result = function(**json.loads(os.environ["LINNET_PARAMETERS"]))
    path = os.environ["LINNET_RESULT"]
    if result is None and os.path.exists(path):
        return  # it wrote its result itself
    try:
        text = json.dumps(result, default=plain)
    except TypeError as error:
        raise SystemExit(
            f"{sys.argv[1]} returned {type(result).__name__}, which is no JSON ({error}); "
            "return numbers, texts, lists and dictionaries"
        ) from None
    with open(path + ".part", "w") as file:
        file.write(text)
    os.replace(path + ".part", path)


def plain(value):
    """NumPy's numbers and arrays as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a number, text, list or dictionary")


if __name__ == "__main__":
    main()
