"""Counting inside jitted JAX functions, with a pytree as state."""

from __future__ import annotations

from typing import Any, NamedTuple

from segiou.counting.encoding import Encoding
from segiou.hooks._scoring import missing

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise missing("jax", "jax") from error

import numpy as np

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.device_counts import NONE_MET, CodeTables, Jax, read_counts
from segiou.hooks._scoring import as_int64, carry, check_pixels
from segiou.labels.class_options import ClassOptions

__all__ = ["CountState", "PixelCounter"]


class CountState(NamedTuple):
    """Counts so far, as a pytree of arrays of 32-bit integers.

    Parameters
    ----------
    low : jax.Array
        Low part of each count, ``count % 2**20``.
    high : jax.Array
        High part of each count, ``count // 2**20``.
    maxima : jax.Array
        The largest undeclared value of truth and of prediction, if any.
    batches : jax.Array
        Number of batches that were added.
    """

    low: jax.Array
    high: jax.Array
    maxima: jax.Array
    batches: jax.Array


class PixelCounter:
    """Counts pairs of label arrays inside ``jit``, ``pmap``, ``shard_map`` or ``scan``.

    All methods except :meth:`confusion_matrix` are pure functions of their
    arguments. Counts are exact with and without ``jax_enable_x64``. Without it,
    JAX itself truncates NumPy arrays of 64-bit integers to 32 bits when they are
    passed to a jitted function.

    Parameters
    ----------
    labels, **options
        As for :class:`segiou.ConfusionMatrix`.
    """

    def __init__(self, labels: Any, **options: Any) -> None:
        self.options = ClassOptions.of(labels, **options)
        self.options.warn_of_ignored_classes(stacklevel=3)
        self._tables = CodeTables(Jax("jax", jnp, None), Encoding.of_classes(self.options))

    def init(self) -> CountState:
        """A state without counts."""
        cells = (self.options.num_classes + 2) * (self.options.num_classes + 1) + 1
        low, high = (jnp.zeros(cells, jnp.int32) for _ in range(2))
        return CountState(low, high, jnp.full(2, NONE_MET, jnp.int32), jnp.zeros((), jnp.int32))

    def update(
        self,
        state: CountState,
        truth: Any,
        pred: Any,
        *,
        mask: Any = None,
        argmax: int | None = None,
        threshold: float | None = None,
    ) -> CountState:
        """Add a batch to a state.

        Parameters
        ----------
        state : CountState
            Counts so far.
        truth, pred, mask, argmax, threshold
            As for :meth:`segiou.ConfusionMatrix.update`.

        Returns
        -------
        CountState
            The new state.
        """
        check_pixels(np.shape(truth))
        if argmax is not None or threshold is not None:
            self.options.check_scores(np.shape(pred), argmax)
        count = self._tables.count(truth, pred, mask=mask, argmax=argmax, threshold=threshold)
        low, high = carry(state.low + count.sums.astype(jnp.int32), state.high)
        maxima = jnp.maximum(state.maxima, count.maxima.astype(jnp.int32))
        return CountState(low, high, maxima, state.batches + 1)

    def merge(self, a: CountState, b: CountState) -> CountState:
        """Add the counts of two states.

        Parameters
        ----------
        a, b : CountState
            The states.
        """
        low, high = carry(a.low + b.low, a.high + b.high)
        return CountState(low, high, jnp.maximum(a.maxima, b.maxima), a.batches + b.batches)

    def psum(self, state: CountState, axis_name: Any) -> CountState:
        """Sum a state over the devices of a mapped axis.

        Parameters
        ----------
        state : CountState
            Counts of this device.
        axis_name : hashable
            Name of the mapped axis, as passed to ``pmap`` or ``shard_map``.
        """
        low, high, batches = jax.lax.psum((state.low, state.high, state.batches), axis_name)
        return CountState(*carry(low, high), jax.lax.pmax(state.maxima, axis_name), batches)

    def confusion_matrix(self, state: CountState) -> ConfusionMatrix:
        """Read a state from its device as a :class:`segiou.ConfusionMatrix`.

        Parameters
        ----------
        state : CountState
            Counts so far.

        Raises
        ------
        ValueError
            If undeclared values or NaN scores were counted, or if the state is
            still spread over devices.
        """
        if np.ndim(state.batches):
            msg = (
                f"the state has a device axis of size {len(state.batches)}; sum it with psum, or "
                "pass the state of one device, such as jax.tree.map(lambda x: x[0], state)"
            )
            raise ValueError(msg)
        sums, maxima = as_int64(state.low, state.high), np.asarray(state.maxima)
        count = read_counts(self._tables.encoding, sums, maxima)
        return ConfusionMatrix.from_options(self.options).add(count, pairs=int(state.batches))
