import numpy as np
from numpy.typing import NDArray

def decode(
    data: bytes, lengths: NDArray[np.int64], num_cells: int, /
) -> tuple[bytes, bytes, bytes]: ...
def encode(
    sizes: NDArray[np.int64], cells: NDArray[np.int64], values: NDArray[np.int64], /
) -> tuple[bytes, bytes]: ...
def encode_tables(
    sizes: NDArray[np.int64], values: NDArray[np.int64], add_one: bool, /
) -> tuple[bytes, bytes]: ...
