"""What commands begin with: the job that options describe, and runs from files or folders."""

from __future__ import annotations

import argparse
import csv
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segiou._support.text import csv_name
from segiou.cli.console import note, progress_bar
from segiou.cli.options import option_of
from segiou.labels.class_options import ClassOptions
from segiou.metrics.protocols import load_protocol
from segiou.runs.run import Run
from segiou.scoring.folder import score_job
from segiou.scoring.job import Job
from segiou.scoring.pairings import ids_of

if TYPE_CHECKING:
    from segiou.boundary.boundary_options import BoundaryOptions, Tolerance
    from segiou.boundary.surfaces import SurfaceOptions
    from segiou.instances.object_files import ObjectOptions

_CLASSES = ("labels", "pred_labels", "ignore", "exclude", "unassigned")
_PAIRING = ("truth_suffix", "pred_suffix", "key", "ids", "missing", "extra")
_READING = ("allow_lossy", "resize_pred", "geometry", "on_error")
_RUNNING = ("workers", "run", "shard", "processes", "dask")
_SQLITE = b"SQLite format 3\0"


def job_of(truth: str, pred: str, parsed: argparse.Namespace) -> Job:
    """The job that the options of scoring describe."""
    if parsed.labels is None:
        from segiou.scoring.inspection import label_set_question

        is_score = parsed.name_of_command == "score"
        places = shlex.join([truth, pred]) if is_score else "…"
        msg = label_set_question(truth, f"segiou {parsed.name_of_command} {places}")
        raise ValueError(msg)
    options = ClassOptions.of(**{name: getattr(parsed, name) for name in _CLASSES})
    options.warn_of_ignored_classes(stacklevel=2)
    given = {name: getattr(parsed, name) for name in (*_PAIRING, *_READING)}
    given |= {name: getattr(parsed, name, None) for name in _RUNNING}
    if parsed.ids is not None:
        given["ids"] = ids_of(parsed.ids)
    return Job(
        truth=truth,
        pred=pred,
        options=options,
        protocol=load_protocol(parsed.protocol or "segiou"),
        boundary=_boundary_options(parsed),
        surfaces=_surfaces(parsed),
        spacing=_spacing(parsed),
        objects=_object_options(parsed, options),
        **given,
    )


def _object_options(parsed: argparse.Namespace, classes: ClassOptions) -> ObjectOptions | None:
    """What objects are, if they are to be scored."""
    source = getattr(parsed, "objects", None)
    source = "components" if getattr(parsed, "metric", None) in ("pq", "sq", "rq") else source
    if source is None:
        return None
    from segiou.instances.object_files import ObjectOptions

    things = None
    if given := getattr(parsed, "things", []):
        chosen = ClassOptions.of(classes.labels, exclude=given).exclude
        things = tuple(classes.labels.class_names[index] for index in chosen)
    found = ObjectOptions(source, things, min_size=getattr(parsed, "min_size", None) or 0)
    return found.with_things_of(parsed.labels)


def _surfaces(parsed: argparse.Namespace) -> SurfaceOptions | str | None:
    """What to measure between surfaces, if anything: a convention, or all that is said of it."""
    if getattr(parsed, "metric", None) == "surface_dice":
        return "segiou"
    convention = getattr(parsed, "surface", None)
    widths = _widths(parsed, in_mm=True)
    common, own = _tolerances(parsed)
    if not (own or widths or getattr(parsed, "empty", [])):
        return convention
    from segiou.boundary.boundary_options import BoundaryOptions, Tolerance
    from segiou.boundary.surfaces import CHALLENGES, CONVENTIONS, SurfaceOptions

    if len({tolerance.unit for several in (common, *own.values()) for tolerance in several}) > 1:
        msg = f"--boundary-tolerance {parsed.boundary_tolerance}: give all tolerances in one unit"
        raise ValueError(msg)
    if convention is None:
        convention = parsed.protocol if parsed.protocol in CONVENTIONS else "segiou"
    if parsed.boundary is not None and not (common or own or convention in CHALLENGES):
        common = [*BoundaryOptions().tolerances]
    return SurfaceOptions.of(
        convention,
        tolerances=[tolerance.value for tolerance in common],
        tolerances_of={name: [tolerance.value for tolerance in own[name]] for name in own},
        empty=dict(rule for text in parsed.empty for rule in _rules(text)),
        widths=[Tolerance.of(text).value for text in widths],
    )


def _widths(parsed: argparse.Namespace, *, in_mm: bool) -> list[str]:
    """Widths of Boundary IoU: those in mm are of volumes, others of images."""
    texts = (getattr(parsed, "boundary", None) or "").split(",")
    return [text for text in texts if text and text.endswith("mm") is in_mm]


def _tolerances(parsed: argparse.Namespace) -> tuple[list[Tolerance], dict[str, list[Tolerance]]]:
    """Tolerances in common, and those of single classes or regions."""
    given = getattr(parsed, "boundary_tolerance", None)
    if given is None:
        return [], {}
    from segiou.boundary.boundary_options import Tolerance

    found: dict[str, list[Tolerance]] = {"": []}
    for text in given.split(","):
        name, _, value = text.rpartition("=")
        found.setdefault(name.strip(), []).append(Tolerance.of(value))
    return found.pop(""), found


def _rules(text: str) -> list[tuple[str, tuple[float | str, ...]]]:
    """What measures count where masks are empty."""
    from segiou.boundary.surfaces import DISTANCES

    name, _, values = text.partition("=")
    try:
        rule = tuple(v if v == "diagonal" else float(v) for v in values.split(","))
    except ValueError:
        msg = (
            f"--empty {text}: write MEASURE=BOTH,TRUTH,PRED with three numbers, nan, inf or "
            "diagonal, such as hausdorff_95=nan,diagonal,diagonal"
        )
        raise ValueError(msg) from None
    measure = "hausdorff_percentile" if name.startswith("hausdorff_") else name
    return [(m, rule) for m in (DISTANCES if name == "distances" else [measure])]


def _boundary_options(parsed: argparse.Namespace) -> BoundaryOptions | None:
    """What to measure at boundaries, if anything."""
    for_metric = getattr(parsed, "metric", None) == "boundary_iou"
    widths, in_mm = _widths(parsed, in_mm=False), bool(_widths(parsed, in_mm=True))
    common, own = _tolerances(parsed)
    if not (for_metric or widths or in_mm or common or own):
        return None
    from segiou.boundary.boundary_options import BoundaryOptions, Tolerance

    lists: dict[str, Any] = {"widths": widths} if widths else {}
    if common or own or in_mm:
        unit = next((several[0].unit for several in own.values()), "mm" if in_mm else "absolute")
        lists["tolerances"] = common or [Tolerance(1, unit)]
    if for_metric:
        return BoundaryOptions(contours=())
    if not widths and _surfaces(parsed) is not None:
        # The tolerances are those of the surfaces, and nothing else is measured.
        lists |= {"widths": (), "trimaps": False, "contours": ()}
    if (spacing := _spacing(parsed)) is not None and len(spacing) == 2:
        lists["spacing"] = spacing
    return BoundaryOptions(**lists)


def _spacing(parsed: argparse.Namespace) -> tuple[float, ...] | None:
    text = getattr(parsed, "spacing", None)
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        msg = f"--spacing {text}: give a number for each axis, such as 0.5,0.5"
        raise ValueError(msg) from None


def resampling(parsed: argparse.Namespace) -> dict[str, Any]:
    """What options say about intervals, as arguments of the library."""
    names = ("blocks", "resamples", "seed", "level", "method")
    return {"groups": groups_argument(parsed.group_by)} | {n: getattr(parsed, n) for n in names}


def groups_argument(text: str | None) -> str | Mapping[str, str] | None:
    """Groups of images: a regular expression, or a column of a table."""
    if text is None:
        return None
    name, _, column = text.rpartition(":")
    if not name.lower().endswith(".csv"):
        return text
    path = Path(name).expanduser()
    if not path.is_file():
        msg = f"--group-by {text}: there is no file {path}"
        raise ValueError(msg)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            rows, columns = list(reader), reader.fieldnames or ()
    except (UnicodeDecodeError, csv.Error) as error:
        msg = f"--group-by {text}: {path} is not a CSV file in UTF-8: {error}"
        raise ValueError(msg) from error
    for wanted in ("id", column):
        if wanted not in columns:
            msg = (
                f"{name}: has no column {wanted!r}; its columns are {', '.join(columns) or 'none'}"
            )
            raise ValueError(msg)
    short = [row["id"] for row in rows if row[column] is None]
    if short:
        msg = f"{name}: the row of {short[0]} has no {column}"
        raise ValueError(msg)
    return {csv_name(row["id"]): row[column] for row in rows}


def is_run_file(path: str) -> bool:
    """Whether a path is that of a run file, or of something else in SQLite's format."""
    try:
        with Path(path).expanduser().open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def open_run(path: str, parsed: argparse.Namespace, *, or_folders: str) -> Run:
    """Open a run file; ``or_folders`` says how the command takes folders instead."""
    if Path(path).expanduser().is_dir():
        msg = f"{path} is a folder, not a run file; for folders: {or_folders}"
        raise ValueError(msg)
    run = Run.open(path)
    default = parsed.command.get_default
    names = (*_CLASSES, *_PAIRING, *_READING)
    given = [name for name in names if getattr(parsed, name) != default(name)]
    if given:
        # They would have no effect, and the numbers would not be what was asked for.
        options = ", ".join(map(option_of, given))
        msg = f"{path} is a run file, scored already: leave out {options}, or score its folders"
        raise ValueError(msg)
    if not run.finished and not parsed.quiet:
        note(f"{path}: the run is not finished: {run.provenance['unfinished']}")
    if "partial" in run.provenance and not parsed.quiet:
        note(f"{path}: the run is not complete: {run.provenance['partial']}")
    return run


def open_baseline(path: str) -> Run:
    """Open the run that another is compared with."""
    if Path(path).expanduser().is_dir():
        msg = f"--baseline {path}: is a folder; name a run file, as segiou score --run writes it"
        raise ValueError(msg)
    return Run.open(path)


def score_now(truth: str, pred: str, parsed: argparse.Namespace) -> Run:
    """Score two folders with the options of the command line."""
    for path in (truth, pred):
        if is_run_file(path):
            msg = f"{path} is a run file, not masks; give folders of masks only, or run files only"
            raise ValueError(msg)
    job = job_of(truth, pred, parsed)
    with progress_bar(f"scoring {pred}", quiet=parsed.quiet) as progress:
        return score_job(
            job, progress=progress.update, on_paired=progress.begin, on_problem=progress.problem
        )
