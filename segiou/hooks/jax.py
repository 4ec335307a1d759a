"""Counting inside jitted JAX functions, with a pytree as state."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

from segiou._support.arguments import check_integer, check_names, check_number, check_options
from segiou._support.optional import extra_named
from segiou.hooks._reading import drop_channel, drop_single, is_tracer, shaped, whole_numbers

with extra_named("segiou.hooks.jax needs jax", "jax"):
    import jax
    import jax.numpy as jnp

import numpy as np

from segiou.accumulators.channel_counts import ChannelCounts
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.accumulators.histograms.score_counts import ScoreHistogram
from segiou.counting.arrays import check_mask
from segiou.counting.channels import check_axis
from segiou.counting.device_counts import NUM_MAXIMA
from segiou.counting.device_operations import NONE_MET, Jax
from segiou.hooks._compiled import CompiledCounts, carry
from segiou.labels.class_options import ClassArguments, ClassOptions

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
        The largest undeclared value of truth and of prediction, if any, and the scale of scores.
    batches : jax.Array
        Number of batches that were added.
    """

    low: jax.Array
    high: jax.Array
    maxima: jax.Array
    batches: jax.Array


class PixelCounter:
    """Counts pairs of label arrays, or scores, inside ``jit``, ``pmap``, ``shard_map`` or ``scan``.

    All methods except :meth:`counts` are pure functions of their
    arguments. Counts are exact with and without ``jax_enable_x64``. Without it,
    JAX itself truncates NumPy arrays of 64-bit integers to 32 bits when they are
    passed to a jitted function.

    Parameters
    ----------
    labels, **options
        As for :class:`segiou.ConfusionMatrix`; or a :class:`segiou.ScoreHistogram`, to
        count scores in histograms like it, without regions; or a
        :class:`segiou.ChannelCounts`, to count channels that may overlap.
    """

    def __init__(self, labels: Any, **options: Unpack[ClassArguments]) -> None:
        check_options(PixelCounter, options, ClassArguments)
        if isinstance(labels, (ConfusionMatrix, ChannelCounts, ScoreHistogram)):
            if options:
                kind = type(labels).__name__
                msg = f"{next(iter(options))} does not apply to a {kind}; pass it there"
                raise ValueError(msg)
            like: Any = labels.empty()
        else:
            classes = ClassOptions.of(labels, **options)
            classes.warn_of_ignored_classes()
            like = ConfusionMatrix.from_options(classes)
        self._counts = CompiledCounts(Jax("jax", jnp, None), like)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._counts.like,))

    def init(self) -> CountState:
        """A state without counts."""
        low, high = (jnp.zeros(self._counts.cells, jnp.int32) for _ in range(2))
        return CountState(
            low, high, jnp.full(NUM_MAXIMA, NONE_MET, jnp.int32), jnp.zeros((), jnp.int32)
        )

    def update(
        self,
        state: CountState,
        truth: Any,
        pred: Any,
        *,
        mask: Any = None,
        **decision: Any,
    ) -> CountState:
        """Add a batch to a state.

        Parameters
        ----------
        state : CountState
            Counts so far.
        truth, pred, mask
            As for :meth:`segiou.ConfusionMatrix.update`; `pred` may be scores. A class axis of
            size 1 is dropped, and a mask of shape (N,) applies to whole images.
        **decision
            ``argmax`` or ``threshold``, as there; or of channels ``axis`` and ``threshold``, and
            of histograms ``axis`` and ``activation``, as for their `update`.

        Returns
        -------
        CountState
            The new state.
        """
        check_names("PixelCounter.update", decision, self._counts.tables.decisions)
        self._check_states(state)
        if isinstance(self._counts.like, ChannelCounts) and "axis" not in decision:
            msg = "PixelCounter.update needs axis= for channels, such as axis=1 for (N, C, H, W)"
            raise TypeError(msg)
        truth, pred = shaped(truth, "truth"), shaped(pred, "pred")
        axis = decision.get("argmax", decision.get("axis", -1))
        if not isinstance(self._counts.like, ChannelCounts):
            truth = drop_channel(truth, -1 if axis is None else axis, pred)
        if isinstance(self._counts.like, ConfusionMatrix) and decision.get("argmax") is None:
            truth, pred = drop_single(truth, pred), drop_single(pred, truth)
        truth = whole_numbers(truth)
        mask = None if mask is None else self._valid(jnp.asarray(mask), np.shape(truth), axis)
        self._counts.check_pixels(np.shape(truth))
        if isinstance(self._counts.like, ConfusionMatrix):
            self._check_channels(np.shape(truth), np.shape(pred), decision)
        count = self._counts.tables.count(truth, pred, mask=mask, **decision)
        low, high = self._counts.add(state.low, state.high, count)
        maxima = jnp.maximum(state.maxima, count.maxima.astype(jnp.int32))
        return CountState(low, high, maxima, state.batches + 1)

    def _valid(self, mask: Any, shape: tuple[int, ...], axis: Any) -> Any:
        """A mask in a shape of the truth, of its pixels or of its images; checked."""
        pixels = shape
        if isinstance(self._counts.like, ChannelCounts):
            check_axis(shape, axis)
            pixels = tuple(np.delete(shape, axis).tolist())
        if mask.shape == shape[:1] and len(pixels) > 1:
            mask = jnp.broadcast_to(mask.reshape((-1,) + (1,) * (len(shape) - 1)), shape)
        check_mask(mask, pixels if mask.shape == pixels else shape)
        return mask

    def _check_states(self, *states: CountState) -> None:
        """Raise a ValueError for a state of a different number of counts."""
        for state in states:
            if (cells := np.shape(state.low)[-1]) != self._counts.cells:
                msg = (
                    f"the state has {cells} counts, expected {self._counts.cells}; it belongs to a "
                    "PixelCounter with different classes or options"
                )
                raise ValueError(msg)

    def _check_channels(
        self, truth: tuple[int, ...], pred: tuple[int, ...], decision: dict[str, Any]
    ) -> None:
        """Raise a ValueError for shapes of scores, or of channels, that do not fit the classes."""
        options, argmax = self._counts.like.options, decision.get("argmax")
        if argmax is not None:
            options.check_scores(pred, check_integer("argmax", argmax))
        elif decision.get("threshold") is not None:
            check_number("threshold", decision["threshold"])
            options.check_scores(pred, None)
        elif truth == pred and len(truth) >= 3:
            axes = (1, -1) if len(truth) >= 4 else (-1,)
            options.check_single(truth, axes if options.num_classes == 2 else axes[1:])

    def merge(self, a: CountState, b: CountState) -> CountState:
        """Add the counts of two states.

        Parameters
        ----------
        a, b : CountState
            The states.
        """
        self._check_states(a, b)
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

    def counts(self, state: CountState) -> Any:
        """Read a state from its device, as a :class:`segiou.ConfusionMatrix` or the passed kind.

        Parameters
        ----------
        state : CountState
            Counts so far.

        Raises
        ------
        ValueError
            If undeclared values or NaN scores were counted, or of histograms scores outside
            [0, 1], or if the state is still spread over devices.
        """
        if is_tracer(state.low):
            msg = "counts have no values inside compiled functions; read them outside"
            raise TypeError(msg)
        self._check_states(state)
        if np.ndim(state.batches):
            msg = (
                f"the state has a device axis of size {len(state.batches)}; sum it with psum, or "
                "pass the state of one device, such as jax.tree.map(lambda x: x[0], state)"
            )
            raise ValueError(msg)
        return self._counts.read(state.low, state.high, np.asarray(state.maxima), state.batches)
