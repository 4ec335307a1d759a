"""Whose tensor something is, and where its memory is.

No framework is imported here: a tensor brings its own, which is then already
in :data:`sys.modules`.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["framework_of", "is_on_device", "to_host"]

_ROOTS = {"jax": "jax", "jaxlib": "jax", "tensorflow": "tensorflow", "cupy": "cupy"}


def framework_of(data: object) -> str | None:
    """Name of the framework whose tensor this is, subclasses included; None for all else."""
    kind: Any = type(data)
    return _framework_of_type(kind)


@cache
def _framework_of_type(kind: Any) -> str | None:
    for base in kind.__mro__:
        root = base.__module__.partition(".")[0]
        if root == "torch" and base.__name__ == "Tensor":
            return "torch"
        if root in _ROOTS:
            return _ROOTS[root]
    return None


def is_on_device(data: Any) -> bool:
    """Tell whether data are a tensor whose memory NumPy cannot see.

    Raises
    ------
    TypeError
        If the tensor has no values yet, since it is being traced or compiled;
        or is no rectangle of values.
    """
    framework = None if type(data) is np.ndarray else framework_of(data)
    if framework is None:
        return False
    if framework == "torch":
        return _torch_is_on_device(data)
    if framework == "cupy":
        return True
    if framework == "jax":
        if any(base.__name__ == "Tracer" for base in type(data).__mro__):
            _refuse_symbolic("jax.jit", "segiou.hooks.jax")
        return any(device.platform != "cpu" for device in data.devices())
    return _tensorflow_is_on_device(data)


def _torch_is_on_device(data: Any) -> bool:
    if data.is_nested or data.layout is not sys.modules["torch"].strided:
        msg = "a sparse or nested tensor is no rectangle of labels; make it dense first, or padded"
        raise TypeError(msg)
    if hasattr(data, "full_tensor"):
        msg = (
            "a DTensor is spread over processes; count its to_local() and add the processes up, "
            "or its full_tensor() on one of them"
        )
        raise TypeError(msg)
    if data.is_meta:
        msg = "a tensor on the meta device has a shape but no values to count"
        raise TypeError(msg)
    return not data.is_cpu


def _tensorflow_is_on_device(data: Any) -> bool:
    if type(data).__name__ in ("RaggedTensor", "SparseTensor", "IndexedSlices"):
        msg = (
            f"a {type(data).__name__} is no rectangle of labels; make it dense first: "
            "to_tensor() or tf.sparse.to_dense, or count image by image"
        )
        raise TypeError(msg)
    if not hasattr(data, "numpy"):
        _refuse_symbolic("tf.function", "segiou.hooks.keras")
    return "CPU" not in data.device


def _refuse_symbolic(where: str, hook: str) -> None:
    msg = f"a tensor inside {where} has no values to count yet; use {hook}, which can be compiled"
    raise TypeError(msg)


def to_host(data: Any) -> NDArray[Any]:
    """View a tensor as a NumPy array; copied only if it is on a device."""
    framework = framework_of(data)
    if framework == "torch":
        return _torch_to_host(data)
    if framework == "cupy":
        return np.asarray(data.get())
    return np.asarray(data)  # JAX's and TensorFlow's __array__ views their memory


def _torch_to_host(data: Any) -> NDArray[Any]:
    torch = sys.modules["torch"]
    tensor = data.detach().as_subclass(torch.Tensor).cpu()
    if tensor.dtype == torch.bfloat16:
        # NumPy has no bfloat16: hand its bits over under its name.
        bits = tensor.view(torch.int16).numpy()
        return np.asarray(bits.view([("bfloat16", np.uint16)]))
    array: NDArray[Any] = tensor.resolve_neg().numpy()
    return array
