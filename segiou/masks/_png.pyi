from typing_extensions import Buffer

def unfilter(
    raw: Buffer, out: Buffer, above: Buffer, width: int, depth: int, scale: int
) -> bool: ...
