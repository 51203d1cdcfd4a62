"""Types of the little of msgpack that is used: the package ships none."""

from typing import Any

class UnpackException(Exception): ...
class FormatError(ValueError, UnpackException): ...
class StackError(ValueError, UnpackException): ...
class ExtraData(ValueError, UnpackException): ...

def packb(o: object, *, use_bin_type: bool = True, strict_types: bool = False) -> bytes: ...
def unpackb(
    packed: bytes,
    *,
    raw: bool = False,
    use_list: bool = True,
    strict_map_key: bool = True,
    max_str_len: int = -1,
    max_bin_len: int = -1,
    max_array_len: int = -1,
    max_map_len: int = -1,
    max_ext_len: int = -1,
    max_buffer_size: int = 0,
) -> Any: ...
