"""What a scoring job is asked for, made and checked once; its pairs, and what is wrong there."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from segiou._support.arguments import (
    check_choice,
    check_flag,
    check_integer,
    check_kind,
    read_several,
    refuse_kind,
)
from segiou._support.files import Problem, problem_lines, read_rows, read_text
from segiou._support.text import encodable, plural
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions
from segiou.masks.pairing import IS_A_FILE, Pair, Pairing, listed_files, pair_folders, split_ending
from segiou.masks.sources import LocalFolder, RemoteFolder, Source, open_source
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.scoring.pair import Geometry

if TYPE_CHECKING:
    from segiou.boundary.boundary_options import BoundaryOptions, Tolerance
    from segiou.boundary.surface_plan import SurfacePlan
    from segiou.boundary.surfaces import SurfaceOptions
    from segiou.measures.measure import Measure

Unpaired = Literal["error", "skip"]
#: A line of two words, the second of which is a flag or a file.
_TWO_WORDS = re.compile(r"(\S+)\s+(?:[+-]?\d+|\S+\.\w+)")


class DataError(ValueError):
    """Problems of a data set. The message groups files with the same problem.

    Attributes
    ----------
    problems : tuple of Problem
        All of them.
    reason : str
        What explains most of them, where that is known; the message then gives
        it instead of them.
    """

    def __init__(self, problems: Sequence[Problem], reason: str = "") -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.reason = reason
        lines = [reason] if reason else problem_lines(self.problems)
        if len(lines) < len(self.problems):
            lines.append(
                "all of them, one by one: --problems FILE (in Python .problems of this error)"
            )
        head = plural(len(self.problems), "problem")
        super().__init__(f"{head}:\n" + "\n".join(f"  {line}" for line in lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return (DataError, (self.problems, self.reason))


class ScoringStopped(Exception):
    """Scoring was asked to stop before all pairs were done.

    Attributes
    ----------
    done, total : int
        Pairs that are scored, and all.
    """

    def __init__(self, done: int, total: int) -> None:
        self.done = done
        self.total = total
        super().__init__(f"stopped after {done} of {total} pairs")

    def __reduce__(self) -> tuple[Any, ...]:
        return (ScoringStopped, (self.done, self.total))


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything that :func:`segiou.score_folder` and the command are asked for.

    What can be called (executors, callbacks) is no part of it.

    Parameters
    ----------
    truth, pred, truth_suffix, pred_suffix, key, ids, missing, extra, shard
        Which pairs, as :func:`segiou.score_folder` takes them.
    options : ClassOptions
        The classes, and what is ignored.
    protocol : Protocol, optional
        How means are made.
    on_error, allow_lossy, resize_pred, geometry, spacing, boundary, measures, surfaces
        How a pair is read and what is measured, as :func:`segiou.score_folder` takes them.
    run, workers, processes, dask, storage_options, name
        Where the run is kept and who works, as :func:`segiou.score_folder` takes them.

    Raises
    ------
    TypeError
        If an argument is of the wrong kind.
    ValueError
        If arguments do not fit together.
    """

    truth: str | Path
    pred: str | Path
    options: ClassOptions
    protocol: Protocol = field(default_factory=lambda: load_protocol("segiou"))
    truth_suffix: str | None = None
    pred_suffix: str | None = None
    key: str | None = None
    ids: tuple[str, ...] | None = None
    missing: Unpaired = "error"
    extra: Unpaired = "error"
    on_error: Literal["stop", "skip"] = "stop"
    allow_lossy: bool = False
    resize_pred: Literal["nearest"] | None = None
    geometry: Geometry = "check"
    boundary: BoundaryOptions | None = None
    measures: tuple[Measure, ...] = ()
    surfaces: SurfaceOptions | str | None = None
    spacing: Sequence[float] | None = None
    run: str | Path | None = None
    shard: tuple[int, int] | None = None
    workers: int | None = None
    processes: int | None = None
    dask: str | None = None
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    name: str = ""

    def __post_init__(self) -> None:
        path = (str, os.PathLike), "a path or an address"
        kinds: dict[str, Any] = {
            **dict.fromkeys(("truth", "pred", "run"), path),
            **dict.fromkeys(("truth_suffix", "pred_suffix", "key", "name"), (str, "text")),
            "storage_options": (Mapping, "a mapping"),
            "dask": (str, "the address of a Dask scheduler"),
        }
        for name, kind in kinds.items():
            if (value := getattr(self, name)) is not None or name in ("truth", "pred"):
                check_kind(name, value, *kind)
        check_choice("missing", self.missing, get_args(Unpaired))
        check_choice("extra", self.extra, get_args(Unpaired))
        check_choice("on_error", self.on_error, ("stop", "skip"))
        check_choice("geometry", self.geometry, get_args(Geometry))
        if self.resize_pred is not None:
            check_choice("resize_pred", self.resize_pred, ("nearest",))
        check_flag("allow_lossy", self.allow_lossy)
        if self.shard is not None:
            _check_shard(self.shard)
        for name in ("workers", "processes"):
            if (count := getattr(self, name)) is not None:
                check_integer(name, count, 1)
        # Values too far apart to be counted are refused once, and not with every pair.
        Encoding.of_classes(self.options)

    @property
    def title(self) -> str:
        """The name of what is scored: by default the last part of the predictions' path."""
        return self.name or encodable(Path(str(self.pred)).name or str(self.pred))

    def along(self, *, volumes: bool) -> tuple[BoundaryOptions | None, SurfacePlan | None]:
        """What is measured at boundaries, and between surfaces.

        Of volumes only surfaces are measured, if anything is. A convention alone takes the
        tolerances of boundaries, in mm of volumes and in pixels, or units of the spacing, of
        images; boundaries may have nothing else. By default volumes are measured as by the
        protocol's convention, if it has one.

        Parameters
        ----------
        volumes : bool
            Whether the masks are volumes.

        Returns
        -------
        tuple of BoundaryOptions or None and SurfacePlan or None

        Raises
        ------
        ValueError
            If a tolerance is none of such masks, or widths are given for volumes.
        """
        if self.boundary is None and self.surfaces is None:
            return None, None
        from segiou.boundary.boundary_options import BoundaryOptions
        from segiou.boundary.surface_plan import SurfacePlan

        usual, spacing = BoundaryOptions(), self.spacing
        boundary = self.boundary or BoundaryOptions((), tolerances=(), contours=())
        if volumes and boundary.widths not in ((), usual.widths):
            msg = (
                f"widths {', '.join(map(str, boundary.widths))}: Boundary IoU of volumes has "
                "widths in mm: --boundary=2mm (in Python surfaces=SurfaceOptions(widths=...))"
            )
            raise ValueError(msg)
        if spacing is None and boundary.spacing != usual.spacing:
            spacing = boundary.spacing
        in_mm = volumes or any(tolerance.unit == "mm" for tolerance in boundary.tolerances)
        if in_mm and spacing is None and not volumes:
            msg = "tolerances in mm need the size of a pixel in mm: spacing=(H, W) (--spacing H,W)"
            raise ValueError(msg)
        plan = None
        if volumes or self.surfaces is not None:
            options = self._surface_options(boundary.tolerances, usual.tolerances)
            how: Any = {"volumes": volumes, "in_mm": in_mm, "spacing": spacing}
            plan = SurfacePlan.of(options, self.options, **how)
        is_measured = not volumes and (boundary.widths or boundary.contours)
        return boundary if is_measured else None, plan

    def _surface_options(
        self, tolerances: tuple[Tolerance, ...], usual: tuple[Tolerance, ...]
    ) -> SurfaceOptions:
        """Options as they are given, or a convention with the tolerances of boundaries."""
        from segiou.boundary.surfaces import CONVENTIONS, SurfaceOptions

        if self.surfaces is not None and not isinstance(self.surfaces, str):
            return self.surfaces
        own = self.protocol.name
        name = self.surfaces or (own if own in CONVENTIONS else "segiou")
        if shares := [str(t) for t in tolerances if t.unit == "diagonal"]:
            msg = (
                f"tolerance {shares[0]}: surfaces have tolerances of a fixed distance, and no "
                "share of the diagonal; give pixels, or mm such as '2mm'"
            )
            raise ValueError(msg)
        is_challenge = name in CONVENTIONS and CONVENTIONS[name].is_challenge
        given = () if is_challenge and tolerances == usual else tolerances
        return SurfaceOptions.of(name, tolerances=tuple(tolerance.value for tolerance in given))

    @cached_property
    def sources(self) -> tuple[Source, Source]:
        """Where truth and prediction are.

        Raises
        ------
        DataError
            If truth and prediction are one place.
        """
        sources = [open_source(place, self.storage_options) for place in (self.truth, self.pred)]
        # Suffixes may tell the files of one folder apart.
        is_file = isinstance(sources[0], LocalFolder) and Path(sources[0].root).is_file()
        alike = is_file or self.truth_suffix == self.pred_suffix
        if alike and _is_one_place(*sources):
            text = (
                "truth and prediction are the same; give two different folders, or say which "
                "files are which: truth_suffix, pred_suffix (--truth-suffix, --pred-suffix)"
            )
            raise DataError([Problem(str(self.truth), text)])
        if self.run is not None:
            # A run file names full paths, which mean the same wherever it is read.
            sources = [_absolute(source) for source in sources]
        return sources[0], sources[1]


def _check_shard(shard: object) -> None:
    if not isinstance(shard, (tuple, list)) or len(shard) != 2:
        raise refuse_kind("shard", shard, "two integers, (part, parts)")
    part, parts = (check_integer("shard", number) for number in shard)
    if not 1 <= part <= parts:
        msg = f"shard {part}/{parts}: there are parts 1 to {parts}"
        raise ValueError(msg)


def _is_one_place(truth: Source, pred: Source) -> bool:
    if not (isinstance(truth, LocalFolder) and isinstance(pred, LocalFolder)):
        return truth == pred
    paths = Path(truth.root), Path(pred.root)
    return truth == pred or (all(p.exists() for p in paths) and paths[0].samefile(paths[1]))


def _absolute(source: Source) -> Source:
    if isinstance(source, RemoteFolder):
        return source
    # All that other places are described by is paths.
    paths = {name: str(Path(path).absolute()) for name, path in vars(source).items()}
    return type(source)(**paths)


def measures_of(
    measures: Iterable[Measure | str], objects: Any, labels: Any, spacing: Any = None
) -> tuple[Measure, ...]:
    """Read a caller's choice; a module is loaded only where its measure is asked for."""
    from segiou.measures.registry import measure_of, read_measures

    several = [*read_measures(measures)]
    if objects not in (None, False):
        several.append(measure_of("objects").of(objects))
    return tuple(one.fitted(labels, spacing) for one in several)


def pair_sources(truth: Source, pred: Source, job: Job | None = None) -> Pairing:
    """Pair the masks of two places, as the job says; two local files are one pair.

    With ids, only the truth files that they name, and their predictions.

    Raises
    ------
    DataError
        If a place is missing, unreadable or empty, or a file stands against a
        folder.
    """
    if all(isinstance(s, LocalFolder) and Path(s.root).is_file() for s in (truth, pred)):
        pair = Pair(Path(truth.root).stem, truth.root, pred.root)
        return Pairing((pair,), (), (), (), "two files")
    files: list[Mapping[str, str]] = []
    problems = []
    for source in (truth, pred):
        try:
            files.append(source.find())
        except ValueError as error:
            text = str(error).removeprefix(f"{source.root}: ")
            problems.append(Problem(source.root, text))
    if problems:
        # A file is wrong only beside a folder: another problem of a place comes alone.
        advice = f"{IS_A_FILE}; give two folders, or two files"
        others = [problem for problem in problems if problem.text != IS_A_FILE]
        raise DataError(others or [Problem(p.where, advice) for p in problems])
    if not all(isinstance(source, LocalFolder) for source in (truth, pred)):
        from segiou.masks.segment_files import named_as_other

        files = [
            named_as_other(files[0], truth, pred, files[1]),
            named_as_other(files[1], pred, truth, files[0]),
        ]
    if job is None:
        return pair_folders(files[0], files[1])
    how: Any = {"truth_suffix": job.truth_suffix, "pred_suffix": job.pred_suffix, "key": job.key}
    if job.ids is None:
        return pair_folders(files[0], files[1], **how)
    truths, unknown = listed_files(files[0], job.ids, job.truth_suffix, job.key)
    rule = f"{plural(len(job.ids), 'listed id')}; "
    if not truths:
        return Pairing((), (), (), (), f"{rule}none has a truth file", unknown=unknown)
    found = pair_folders(truths, files[1], **how)
    return replace(found, extra=(), rule=rule + found.rule, unknown=unknown)


def pairing_problems(
    pairing: Pairing, missing: Unpaired = "error", extra: Unpaired = "error"
) -> tuple[list[Problem], list[Problem]]:
    """What is wrong with a pairing, and what is left out because it was asked for."""
    shared = "shares its key with others of its folder; keep one of them, or choose "
    shared += "an ending: pred_suffix='{0}' (--pred-suffix {0}), of the truth truth_suffix"
    problems = [
        Problem(
            paths[0],
            f"{shared.format(split_ending(paths[0])[1])} [{key!r}: {', '.join(paths[1:])}]",
        )
        for key, paths in pairing.duplicates
    ]
    left_out: list[Problem] = []
    for names, option, choice, text, what_to_do in (
        (
            pairing.unknown,
            "missing",
            missing,
            "is in the list of ids, but no truth file has it",
            "correct the list, or leave out what is not there",
        ),
        (pairing.missing, "missing", missing, "has no prediction", "make it, or leave it out"),
        (pairing.extra, "extra", extra, "has no truth", "remove it, or leave it out"),
    ):
        if choice == "skip":
            left_out += [Problem(name, text) for name in names]
        else:
            advice = f"{text}; {what_to_do}: {option}='skip' (--{option} skip)"
            problems += [Problem(name, advice) for name in names]
    if not pairing.pairs or (problems and pairing.hint):
        problems.insert(0, Problem("pairing", _unpaired_text(pairing)))
    return problems, left_out


def _unpaired_text(pairing: Pairing) -> str:
    """How few files go together, and what would pair more."""
    count = len(pairing.pairs)
    found = f"only {count} go together" if count else "no file goes with any other"
    what_to_do = pairing.hint or (
        "say what the names differ in: truth_suffix, pred_suffix or key (--truth-suffix, "
        "--pred-suffix, --key)"
    )
    return f"{found} (by {pairing.rule}); {what_to_do}"


def ids_of(choice: str | Path | Iterable[str]) -> tuple[str, ...]:
    """Ids as they are given, or from a list: one a line, or a column of a CSV.

    Of a line with two words, as Pascal VOC's ``ImageSets`` have them, the first
    is taken: the second is a flag, or the file of the truth. The column of a
    CSV stands after its name: ``split.csv:image``.

    Raises
    ------
    TypeError
        If it is neither a path nor ids.
    ValueError
        If there is no such file or column, or it names nothing, or an id twice.
    """
    wanted = "the path of a list, or texts"
    if isinstance(choice, (str, Path)):
        where, ids = str(choice), _read_ids(str(choice))
    else:
        where, ids = "ids", read_several("ids", choice, wanted)
    for id in ids:
        check_kind("ids", id, str, wanted)
    counted = Counter(ids)
    if twice := [id for id, count in counted.items() if count > 1]:
        msg = f"{where}: names {twice[0]} more than once; a list has each id once"
        raise ValueError(msg)
    if not counted:
        msg = f"{where}: names no ids; it should have one a line"
        raise ValueError(msg)
    return tuple(counted)


def _read_ids(text: str) -> list[str]:
    name, _, column = text.rpartition(":")
    is_csv = name.lower().endswith(".csv")
    path = Path(name if is_csv else text).expanduser()
    if is_csv:
        return [row[column] for row in read_rows(path, [column]) if row[column]]
    lines = read_text(path).splitlines()
    if path.suffix.lower() == ".csv" and lines and "," in lines[0]:
        msg = (
            f"{path}: is a table, whose first line is {lines[0]:.80}; name the column of the "
            f"ids: {text}:COLUMN"
        )
        raise ValueError(msg)
    lines = [line.strip() for line in lines if not line.startswith("#")]
    words = [_TWO_WORDS.fullmatch(line) for line in lines]
    ids = [match[1] if match else line for match, line in zip(words, lines, strict=True)]
    return [id for id in ids if id]
