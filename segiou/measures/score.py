"""A score of classes or structures as a function of sums over images."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_kind
from segiou._support.numbers import shown
from segiou._support.text import Json
from segiou.labels.class_options import ClassOptions
from segiou.measures.parts import Parts, row_parts
from segiou.metrics.quantile import quantile
from segiou.metrics.ratio import Floats, exact_parts, joined_parts, ratio as divided

Better = Literal["higher", "lower"]
#: The usual name of an overall value, and the name of one without a custom name.
MEAN, OVERALL = "mean", "overall"


def mean_first(values: Floats, include: NDArray[np.bool_], absent_is_zero: bool = False) -> Floats:
    """Values (..., K) after their mean over the included ones, (..., 1 + K)."""
    known = ~np.isnan(values) & include
    total = np.where(known, values, 0.0).sum(-1)
    mean = divided(total, include.sum() if absent_is_zero else known.sum(-1))
    return np.concatenate([mean[..., None], values], axis=-1)


def weights_of(values: Floats, include: NDArray[np.bool_], absent_is_zero: bool = False) -> Floats:
    """Weights of values (K,) in this mean; 0 for an absent one, whose fixed value nothing moves."""
    known = ~np.isnan(values) & include
    return divided(known, include.sum() if absent_is_zero else known.sum())


def mean_weights(
    evaluate: Callable[[NDArray[Any]], Floats],
    include: NDArray[np.bool_],
    absent_is_zero: bool = False,
) -> Callable[[NDArray[Any]], Floats]:
    """The weights of a score in its mean, as a function of its sums."""
    return lambda sums: weights_of(evaluate(sums)[1:], include, absent_is_zero)


def mean_of_parts(sums: NDArray[Any]) -> Floats:
    """The mean of numbers, from the sums of their parts and how many they are, (..., 3)."""
    return divided(joined_parts(sums), sums[..., 2])


def finite_parts(values: Floats) -> NDArray[np.int64]:
    """Parts of numbers and whether they are finite, (..., 3), for :func:`mean_of_parts`."""
    known = np.isfinite(values)
    return np.concatenate([exact_parts(np.where(known, values, 0.0)), known[..., None]], axis=-1)


def case_values(at: int, parts: Parts) -> Floats:
    """The values of a score of cases (N, K), from the array ``cases`` (N, K, scores)."""
    return parts["cases"][..., at]


@dataclass(frozen=True)
class Quantity:
    """A score or another number: its name, unit and direction in outputs.

    Attributes
    ----------
    name : str
        Its name in options, JSON and columns, such as ``"hausdorff_95"``.
    title : str
        Its name in tables and sentences.
    unit : str
        Unit of the values, such as ``"mm"``; ``"number"`` for plain numbers, ``"coefficient"``
        for coefficients of agreement such as kappa, ``"count"`` for integers, empty for ratios,
        which are shown in per cent.
    better : {"higher", "lower"}, optional
        Which values are better; None if neither is.
    overall : str
        Name of its overall value in tables; by default, the mean of the rows.
    """

    name: str
    title: str
    unit: str = field(default="", kw_only=True)
    better: Better | None = field(default="higher", kw_only=True)
    overall: str = field(default=MEAN, kw_only=True)

    def described(self) -> dict[str, Json]:
        """Title, unit, direction and name of the overall value as plain values."""
        return {
            "title": self.title,
            "unit": self.unit,
            "better": self.better,
            "overall": self.overall,
        }

    @property
    def overall_title(self) -> str:
        """Name of the overall value in a sentence."""
        return self._averaged(self.title)

    def _averaged(self, title: str) -> str:
        return f"{self.overall} {title}" if self.overall.endswith(MEAN) else title


def overall_of(names: Iterable[str]) -> str:
    """The common name of several overall values in one row, from their names."""
    distinct = {*names}
    return distinct.pop() if len(distinct) == 1 else OVERALL


@dataclass(frozen=True)
class Score(Quantity):
    """A score of each class or structure, and an overall value, by default their mean.

    The score is a function of sums over images, so that merging, resampling and
    leaving images out are additions. :meth:`of_classes` and :meth:`of_names`
    make the usual kind: one ratio per class and their mean.

    Attributes
    ----------
    name : str
        Name of the score, as ``--metric`` and ``--fail-under`` take it.
    title : str
        Name of the score in tables.
    names : tuple of str
        The K classes or structures.
    sums : callable
        Parts of N images, or Counts for a score of pixels → (N, F) numbers that add up;
        a SciPy sparse array if most are 0.
    evaluate : callable
        (..., F) sums → (..., 1 + K) values, the overall value first; NaN if undefined.
    seen : callable, optional
        Parts of N images → (N, K) bool: whether the truth contains the structure; by default,
        whether the value of the image is defined.
    occurs : callable, optional
        (..., F) sums → (..., K) bool: whether truth or prediction contain the structure, if its
        value is defined even otherwise, as specificity is.
    unit : str
        Unit of the values, such as ``"mm"``; ``"number"`` for plain numbers, ``"coefficient"``
        for coefficients of agreement such as kappa, empty for ratios, which are shown in per cent.
    better : {"higher", "lower"}
        Which values are better; of a score always one of them.
    overall : str
        Name of the overall value in tables: ``"mean"`` if it is the mean of the classes or
        structures, otherwise for example ``"harmonic mean"``, or ``"overall"``.
    alone : callable, optional
        Parts of N images → (N,) finite values, for scores that may be infinite.
    rule : str
        Kind of mean, in a word; empty for the mean of the classes.
    median_of : callable, optional
        Parts of N images → (N, K) values of the cases, if the score of a
        structure is their median; NaN where it is absent.
    include : ndarray of bool, shape (K,), optional
        Structures that the mean covers; all by default.
    weights : callable, optional
        (F,) sums → (K,) weights of the structures in the mean, which sum to 1.
    scale : {"", "identity", "logit", "fisher", "log"}
        Scale on which intervals are symmetric; by default, by unit and values. Its range is that of
        thresholds: 0 to 1 for logit, −1 to 1 for fisher, at least 0 for log; by default 0 to 1 for
        ratios, and at least 0 for scores with a unit of which lower values are better.
    each : callable, optional
        Parts of N images → (N, 1 + K) values of single images; by default, those of their sums.
    over : str
        What is averaged: ``"D"`` for a ratio of sums over the data set.
    row : int, optional
        The position of the only structure, of :meth:`of_row`.
    is_smooth : bool
        Whether a unit changes the values only slightly, as for ratios. Percentiles jump, so their
        intervals are bootstrapped.

    Examples
    --------
    >>> score = Score("hd", "HD", ("liver",), lambda parts: parts["far"], lambda sums: sums,
    ...               unit="mm", better="lower")
    >>> score.shown(1.526), score.shown(float("inf"))
    ('1.53 mm', '∞ mm')
    """

    names: tuple[str, ...]
    sums: Callable[[Any], NDArray[Any]] = field(repr=False)
    evaluate: Callable[[NDArray[Any]], Floats] = field(repr=False)
    seen: Callable[[Any], NDArray[np.bool_]] | None = field(default=None, repr=False)
    occurs: Callable[[NDArray[Any]], NDArray[np.bool_]] | None = field(default=None, repr=False)
    better: Better = field(default="higher", kw_only=True)
    alone: Callable[[Parts], Floats] | None = field(default=None, repr=False)
    rule: str = ""
    median_of: Callable[[Parts], Floats] | None = field(default=None, repr=False)
    include: NDArray[np.bool_] | None = field(default=None, repr=False)
    weights: Callable[[NDArray[Any]], Floats] | None = field(default=None, repr=False)
    scale: str = ""
    each: Callable[[Any], Floats] | None = field(default=None, repr=False)
    over: str = "D"
    row: int | None = None
    is_smooth: bool = True

    def __post_init__(self) -> None:
        for name in ("name", "title", "unit", "rule", "overall"):
            check_kind(f"the {name} of a score", getattr(self, name), str, "text")
        check_choice("better", self.better, ("higher", "lower"))
        object.__setattr__(self, "names", tuple(map(str, self.names)))

    @classmethod
    def of_classes(
        cls,
        name: str,
        title: str,
        classes: ClassOptions,
        numbers: Callable[[Parts], NDArray[Any]],
        ratio: Callable[[NDArray[Any]], Floats],
        *,
        absent_is_zero: bool = False,
        **more: Any,
    ) -> Score:
        """Make a score of every class and the mean over the included classes.

        Parameters
        ----------
        name, title : str
            As of the score.
        classes : ClassOptions
            The C classes.
        numbers : callable
            Parts of N images → (N, C, f) numbers that add up.
        ratio : callable
            (..., C, f) sums → (..., C) values; NaN if undefined.
        absent_is_zero : bool
            Whether undefined classes count 0 in the mean; excluded by default.
        **more
            Other attributes of the score.
        """
        names, include = classes.labels.class_names, classes.include
        more["absent_is_zero"] = absent_is_zero
        return cls.of_names(name, title, names, include, numbers, ratio, **more)

    @classmethod
    def of_names(
        cls,
        name: str,
        title: str,
        names: Sequence[str],
        include: NDArray[np.bool_] | Sequence[bool],
        numbers: Callable[[Parts], NDArray[Any]],
        ratio: Callable[[NDArray[Any]], Floats],
        *,
        absent_is_zero: bool = False,
        **more: Any,
    ) -> Score:
        """Make a score of structures that need not be classes.

        Parameters
        ----------
        name, title : str
            As of the score.
        names : sequence of str
            The K structures.
        include : array_like of bool, shape (K,)
            Which of them the mean covers.
        numbers, ratio, absent_is_zero, **more
            As of :meth:`of_classes`.
        """
        selected = np.asarray(include, dtype=bool)

        def sums(parts: Parts) -> NDArray[Any]:
            counts = np.asarray(numbers(parts))
            return counts.reshape(len(counts), math.prod(counts.shape[1:]))

        def evaluate(flat: NDArray[Any]) -> Floats:
            if not len(selected):
                return np.full((*flat.shape[:-1], 1), np.nan)
            each = flat.shape[-1] // len(selected)
            values = ratio(flat.reshape(*flat.shape[:-1], len(selected), each))
            return mean_first(values, selected, absent_is_zero)

        weights = mean_weights(evaluate, selected, absent_is_zero)
        more = {"include": selected, "weights": weights, **more}
        return cls(name, title, tuple(names), sums, evaluate, **more)

    @classmethod
    def of_cases(
        cls,
        name: str,
        title: str,
        names: Sequence[str],
        values: Callable[[Any], Floats],
        **more: Any,
    ) -> Score:
        """Make a score of structures that is the mean over the cases where it is finite.

        Parameters
        ----------
        name, title, names
            As of :meth:`of_names`; the mean covers every structure.
        values : callable
            Parts of N cases → (N, K) values.
        **more
            Other attributes of the score.
        """

        def numbers(parts: Parts) -> NDArray[np.int64]:
            return finite_parts(np.asarray(values(parts)))

        every = np.ones(len(names), bool)
        more |= {"rule": "cases", "over": "class"}
        return cls.of_names(name, title, names, every, numbers, mean_of_parts, **more)

    def of_row(self, name: str) -> Score:
        """The score of one class or structure, which is then the whole.

        Parameters
        ----------
        name : str
            The class or structure.
        """
        at = self.names.index(name)

        def only(values: Floats) -> Floats:
            return values[..., [1 + at, 1 + at]]  # the whole is this row

        medians, seen, alone = self.median_of, self.seen, self.alone

        def finite(parts: Parts) -> Floats:
            values = only(self.of_images(parts))[:, 0]
            # Those of the image, since 0 would be the best distance.
            return values if alone is None else np.where(np.isfinite(values), values, alone(parts))

        return replace(
            self,
            name=f"{self.name}:{name}",
            title=f"{self.title} of {name}",
            names=(name,),
            row=at,
            seen=seen and (lambda parts: seen(parts)[:, at : at + 1]),
            evaluate=lambda sums: only(self.evaluate(sums)),
            each=lambda parts: only(self.of_images(parts)),
            alone=finite if alone else None,
            median_of=medians and (lambda parts: medians(parts)[:, at : at + 1]),
            overall=OVERALL,
            include=np.ones(1, bool),
            occurs=None,
            weights=lambda sums: np.ones(1),
        )

    def of_medians(self, values: Floats, units: NDArray[np.intp], number: int) -> Score:
        """The score as exact medians, a function of how often each unit is resampled.

        Parameters
        ----------
        values : ndarray, shape (N, K)
            Values of the cases.
        units : ndarray of int, shape (N,)
            The unit of each case.
        number : int
            Number of units.
        """
        order = np.argsort(values, axis=0, kind="stable")  # NaN is last
        ordered = np.take_along_axis(values, order, axis=0)
        known = ~np.isnan(ordered)
        selected = np.ones(len(self.names), bool) if self.include is None else self.include

        def evaluate(times: NDArray[Any]) -> Floats:
            if not values.shape[1]:
                return np.full((*np.shape(times)[:-1], 1), np.nan)
            medians = []
            for k in range(values.shape[1]):
                is_known = known[:, k]
                often = np.asarray(times)[..., units[order[is_known, k]]]
                medians.append(quantile(ordered[is_known, k], 0.5, often))
            rows = np.stack(medians, axis=-1)
            return rows if not self.names else mean_first(rows, selected)

        return replace(self, evaluate=evaluate, weights=mean_weights(evaluate, selected))

    def over_classes(self, keep: NDArray[np.bool_]) -> Score:
        """The same score with a mean over fewer structures.

        Parameters
        ----------
        keep : ndarray of bool, shape (K,)
            Structures that the mean may cover; undefined ones are excluded.
        """
        selected = keep if self.include is None else keep & self.include

        def evaluate(sums: NDArray[Any]) -> Floats:
            return mean_first(self.evaluate(sums)[..., 1:], selected)

        def each(parts: Any) -> Floats:
            return mean_first(self.of_images(parts)[:, 1:], selected)

        weights = mean_weights(evaluate, selected)
        return replace(self, include=selected, evaluate=evaluate, weights=weights, each=each)

    @property
    def is_mean(self) -> bool:
        """Whether the overall value is the mean of the classes or structures."""
        return self.overall == MEAN

    @property
    def overall_title(self) -> str:
        """Name of the overall value in a sentence."""
        if self.median_of is not None and self.is_mean:
            return f"mean of {self.title}"
        return super().overall_title

    @property
    def image_title(self) -> str:
        """Name of the value of one image in a sentence."""
        title = self.title.removeprefix("median ")
        return self._averaged(title)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of its columns in tables of images: the mean, then ``NAME:STRUCTURE``."""
        return (self.name, *(f"{self.name}:{name}" for name in self.names))

    def values(self, total: Any) -> Floats:
        """Evaluate all images together.

        Parameters
        ----------
        total : Parts or Counts
            Counts of one or more images.

        Returns
        -------
        ndarray of float64, shape (1 + K,)
            The mean, then each structure.
        """
        if self.median_of is not None:  # of all cases
            cases = self.median_of(total)
            number = len(cases)
            exact = self.of_medians(cases, np.arange(number), number)
            return exact.evaluate(np.ones(number, np.int64))
        return self.evaluate(self.sums(total).sum(0))

    def of_images(self, parts: Parts) -> Floats:
        """Evaluate each image.

        Parameters
        ----------
        parts : Parts
            Parts of N images.

        Returns
        -------
        ndarray of float64, shape (N, 1 + K)
        """
        if self.each is not None:
            return self.each(parts)
        return np.concatenate([self.evaluate(part) for part in row_parts(self.sums(parts))])

    def seen_in(self, parts: Parts) -> NDArray[np.bool_]:
        """Whether each image has each structure: as declared, or whether it has a value.

        Parameters
        ----------
        parts : Parts
            Parts of N images.

        Returns
        -------
        ndarray of bool, shape (N, K)
        """
        if self.seen is not None:
            return self.seen(parts)
        return ~np.isnan(self.of_images(parts)[:, 1:])

    def shown(self, value: float) -> str:
        """Format a value: a ratio in per cent, a plain number, or a value with its unit.

        Parameters
        ----------
        value : float
            A value of the score.
        """
        return shown(value, self.unit)
