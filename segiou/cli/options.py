"""The commands and their options, as one table: it makes the parsers, their help and the hints.

A line of the table is an option and what its help says. After an option stands the kind of its
value: ``{a,b}`` is a choice, ``[…]`` may be left out (``=`` says what that means), ``...`` may be
repeated. Without one the option is a switch. A word without hyphens is an argument, not an option.
Over the lines stands a heading of the help, and the commands that have them. The attribute that an
option sets has its name, which is the name of the argument of the library, too.
"""

from __future__ import annotations

import argparse

# The module typing would take a tenth of the time that help takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: What a command does, and the options of its short help (none: all of them).
COMMANDS = {
    "score": (
        "score a folder of predicted masks against a folder of true masks",
        "labels ignore protocol run output html images fail-under intervals group-by",
    ),
    "explain": (
        "explain the gap between pixel accuracy and mean IoU",
        "labels ignore protocol format output",
    ),
    "compare": (
        "compare models on the same images, with intervals and tests",
        "truth names metric labels protocol group-by blocks html images output",
    ),
    "report": (
        "show a run again, in any format, without the masks",
        "protocol format output html images detail fail-under baseline intervals group-by",
    ),
    "merge": ("join run files into one", ""),
    "inspect": ("show what is in the masks of a folder", ""),
    "labelsets": ("list the label sets, or print one as TOML", ""),
    "demo": ("draw street scenes, and score two models on them", ""),
    "explore": ("open a page to try IoU on: drag rectangles, paint masks", ""),
}

_TABLE = """\
arguments: score
  TRUTH  folder (or file) of true masks
  PRED  folder (or file) of predicted masks
arguments: explain
  PATH...  a run file; or two folders of masks, TRUTH PRED
arguments: compare
  MODEL...  two or more run files of the same images; or folders of predictions, with --truth and
      --labels
arguments: report
  RUN_FILE  run file, as segiou score --run writes it
arguments: merge
  RUN_FILE...  run files of the same options
arguments: inspect
  DIR  folder of masks, or one mask
arguments: labelsets
  [NAME]  print this set as TOML
label files: labelsets
  --from FILE  print the label set of another tool's file as TOML: COCO's categories, id2label of
      Hugging Face, METAINFO of MMSegmentation as JSON, dataset.json, labelmap.txt, or a raster
arguments: demo
  [DIR=segiou-demo]  folder to write into (default: segiou-demo)
models: compare
  --truth DIR  folder of true masks, where the models are folders
  --names A,B  names of the models (default: those of their folders)
  --metric NAME  what to compare: iou, dice, boundary_iou, surface_dice, pq, …; an unknown name
      lists all
      [default: iou]
classes: score explain compare
  --labels SET  the classes, needed for masks: a preset (segiou labelsets lists them), a TOML file,
      or a number of classes
  --pred-labels SET  the classes of the predictions, if their values differ from the truth's
  --ignore VALUE...  do not count pixels whose truth has this value or class (repeat the option, or
      write a,b,c)
  --exclude CLASS...  count this class, but leave it out of the means (repeat the option, or write
      a,b,c)
  --unassigned {error,count}  a predicted value that is no class is an error, or counted as a missed
      pixel [default: error]
pairs: inspect
  --pred DIR  folder of predictions for these masks: list the pairs that differ in size or, of
      volumes, in spacing, affine or orientation
classes: inspect
  --labels SET  compare with this label set only
  --propose FILE  write a label set of the values and colours found to this TOML file, to be named
pairing: score explain compare
  --truth-suffix TEXT  ending that only names of the truth have, such as _gt or _gt.png
  --pred-suffix TEXT  ending that only names of the predictions have
  --key REGEX  regular expression with a group named 'key': files with the same key are a pair
  --ids LIST  score only the images in this file: one id a line, as Pascal VOC's ImageSets have
      them, or FILE.csv:COLUMN
  --missing {error,skip}  true masks without a prediction are an error, or skipped and listed
      [default: error]
  --extra {error,skip}  predictions without a true mask are an error, or skipped and listed
      [default: error]
reading: score explain compare
  --allow-lossy  read JPEG masks, although compression may have changed their values
  --resize-pred {nearest}  resize a prediction to the size of its truth (default: another size is an
      error)
  --geometry {check,ignore,reorient}  of volumes and GeoTIFF: refuse a prediction whose shape,
      spacing, affine or orientation (coordinate system or corners) is not its truth's, compare
      voxel by voxel all the same, or exchange axes first [default: check]
  --on-error {stop,skip}  where pairs cannot be counted, stop after all were tried, or skip and list
      them [default: stop]
boundaries: score
  --boundary [WIDTHS=2%]  measure boundaries too: Boundary IoU within these widths, F1, surface Dice
      and surface distances; widths in pixels or % of the diagonal, such as --boundary=2%,3
      (default: 2%); of volumes, the distances between surfaces in mm
  --boundary-tolerance LIST  tolerances of F1 and surface Dice, in pixels or % of the diagonal; of
      volumes in mm, such as 1mm,2mm; a class or region may have its own: 2mm,liver=5mm
      (default: 1,2,4)
  --surface
      {segiou,medpy,monai,surface-distance,metricsreloaded,totalsegmentator,kits23,flare22}  in
      every image or volume, measure the distances between surfaces as this tool or challenge
      defines them (default, of volumes: that of --protocol, else segiou)
  --empty MEASURE=BOTH,TRUTH,PRED...  what a measure of surfaces counts where both masks, only the
      truth's or only the prediction's are empty: numbers, nan, inf or diagonal, such as
      hausdorff_95=nan,diagonal,diagonal (repeat the option for more)
  --spacing A,B  size of a pixel along each axis (of a volume A,B,C), in place of what the files say
objects: score
  --objects [SOURCE=components]  score objects too, by panoptic quality: connected components of
      each class, or the ids in files of coco, cityscapes or kitti (default: components)
  --things CLASS...  only these classes have objects, of each of the others all pixels of an image
      are one (repeat the option, or write a,b,c)
  --min-size NUMBER  components of fewer pixels are no objects
running: score explain compare inspect
  --workers N  number of threads (default: one a core)
running: score explain compare inspect report merge
  --quiet  show no progress and no notes
running: score
  --run RUN_FILE  keep the counts of every finished pair in this run file; if it exists, continue
      where it stopped
  --problems FILE  write all problems with files to this CSV, one a row
  --shard I/N  score only part I of N of the pairs; segiou merge joins the run files
  --processes N  use N processes instead of threads
  --dask ADDRESS  use the Dask cluster whose scheduler has this address, such as tcp://host:8786
report: score explain compare report
  --protocol NAME  compute the means as this program does: segiou, detectron2, ade20k, …; an unknown
      name lists all (default: that of the run, else segiou)
report: score report
  --format {table,json,csv,markdown,html,nnunet}  format of the output (default: by the ending of
      --output, or table)
report: explain compare inspect
  --format {table,json}  format of the output (default: by the ending of --output, or table)
report: score explain compare report inspect
  -o, --output FILE  write to this file instead of stdout
report: merge
  -o, --output RUN_FILE  write the merged run to this new file [required]
  --partial  merge although parts (--shard I/N) of the data set are missing; reports then say so
page: explore
  -o, --output FILE  write the page to this file
  --no-open  do not open a browser
report: score report
  --detail  show mean accuracy, and means over images and over the images that score least, too
  --per-image FILE  write a CSV with one row an image
  --worst K  also list the K worst images (not in CSV)
  --worst-by SCORE  score that ranks the images: mean_iou, pixel_accuracy, iou:CLASS, influence
      (mean IoU of the data set with the image minus without it), objects_missed or
      objects_invented [default: mean_iou]
  --sort {order,name,iou,dice,precision,recall,share,tp,fp,fn}  what orders the classes, order being
      that of the label set [default: order]
  --reverse  reverse that order
  --fail-under NAME=VALUE...  threshold: exit with 1 if a score is below it, such as miou=0.7; for
      all classes: miou, pixel_accuracy, mean_accuracy, …; for one: iou:CLASS, dice:CLASS,
      precision:CLASS, recall:CLASS (repeat the option for more)
  --baseline RUN  compare with this run of the same images, such as that of the main branch; in
      tables, JSON, Markdown and pages
  --fail-if-worse  threshold: exit with 1 if mean IoU is worse than the baseline's, and so the whole
      interval of the difference
  --junit FILE  write the outcome of every threshold as JUnit XML, for continuous integration
page: score compare report
  --html FILE  write an HTML page with scores and images; DIR/ (with the slash) writes
      DIR/index.html and beside it the pictures of all images, for thousands
  --images DIR  folder of the images that the masks belong to, found by the masks' names, for the
      page
  --examples NUMBER  hold the pictures of at most this many images in a page that is one file
      [default: 100]
  --plots DIR  write figures to this folder, as PNG, SVG and PDF
intervals: score report
  --intervals  add bootstrap intervals of all classes, and how far they can be relied on; over
      groups with --group-by, over blocks of neighbouring images with --blocks
intervals: score compare report
  --group-by REGEX  images that belong together, such as frames of one drive: those in whose ids
      this finds the same text; or FILE.csv:COLUMN, a table with a column 'id'; or none: images are
      independent
  --blocks LENGTH  resample blocks of about this many neighbouring images along each group, or each
      sequence that the ids show; auto: by how alike neighbours score
  --level P  level of the intervals [default: 0.95]
  --resamples N  number of resamples [default: 10000]
  --seed NUMBER  seed [default: 0]
  --method {percentile,bca}  kind of interval [default: percentile]
"""


#: More choices than this stand in the text of the help.
_FEW = 3


def arguments_of(command: str) -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    """The arguments of a command: heading, names of the option, what argparse is to know."""
    heading, wanted = "", False
    for line in _TABLE.replace("\n      ", " ").splitlines():
        if not line.startswith(" "):
            heading, _, commands = line.partition(":")
            wanted = command in commands.split()
        elif wanted:
            words, _, text = line.strip().partition("  ")
            names = [word.rstrip(",") for word in words.split() if word.startswith("-")]
            value = words.rpartition(" ")[2]
            yield heading, names, _settings(names, "" if value in names else value, text)


def _settings(names: list[str], value: str, text: str) -> dict[str, Any]:
    text, _, mark = text.removesuffix("]").partition(" [")
    settings: dict[str, Any] = {"help": f"{text} ({mark})" if mark else text}
    settings["help"] = settings["help"].replace("%", "%%")
    if not value:
        is_not = names[-1].startswith("--no-")
        settings["action"] = "store_false" if is_not else "store_true"
        return settings | ({"dest": names[-1].removeprefix("--no-")} if is_not else {})
    if value.startswith("["):
        value, _, alone = value[1:-1].partition("=")
        settings |= {"nargs": "?", "const" if names else "default": alone or None}
    if value.endswith("..."):
        value = value.removesuffix("...")
        settings |= {"action": "extend", "default": []} if names else {"nargs": "+"}
    if value.startswith("{"):
        choices = settings["choices"] = value[1:-1].split(",")
        if len(choices) > _FEW:
            settings["metavar"] = names[-1].removeprefix("--").upper()
            settings["help"] = f"{', '.join(choices)}: {settings['help']}"
    else:
        settings["metavar"] = value
    if not names:
        return settings | {"dest": value.lower()}
    settings["type"] = read = _KINDS.get(value, str)
    if mark.startswith("default: "):
        settings["default"] = read(mark.removeprefix("default: "))
    return settings | ({"required": True} if mark == "required" else {})


def option_of(name: str) -> str:
    """The option that sets an attribute of the command line."""
    return f"--{name.replace('_', '-')}"


def _label_set(text: str) -> str | int:
    """A label set on the command line: a number of classes, or a name."""
    return _count(text) if text.isdecimal() else text


def _class_values(text: str) -> list[int | str]:
    """Values or names of classes, with commas between."""
    if text and not text.strip(" ,"):
        msg = f"takes values or names of classes, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return [_number_or_name(part.strip()) for part in text.split(",") if part.strip() or not text]


def _number_or_name(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _count(text: str, least: int = 0) -> int:
    # Numbers of more digits are refused by Python, and mean nothing here.
    if not text.isdecimal() or len(text) > 1000 or int(text) < least:
        msg = f"{text[:40]!r} is not a number of at least {least}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _block_length(text: str) -> float | str:
    try:
        length = float(text)
    except ValueError:
        length = 0.0
    if text != "auto" and not 1 <= length < float("inf"):
        msg = f"{text!r} is neither auto nor a number of images of at least 1"
        raise argparse.ArgumentTypeError(msg)
    return length or text


def _shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    are_numbers = part.isdecimal() and parts.isdecimal()
    if not are_numbers or not 1 <= _count(part) <= _count(parts):
        msg = f"{text!r} is not of the form I/N with I from 1 to N"
        raise argparse.ArgumentTypeError(msg)
    return int(part), int(parts)


def _address(text: str) -> str:
    if text and not text.rpartition(":")[2].isdecimal():
        msg = f"{text!r} is not an address with a port, such as tcp://host:8786"
        raise argparse.ArgumentTypeError(msg)
    return text


def _run_file(text: str) -> str:
    """Where to write a run file, which is a data base and not a stream."""
    if text == "-":
        msg = "a run file cannot be written to stdout; name a file"
        raise argparse.ArgumentTypeError(msg)
    return text


#: How the values of options are read; others are texts.
_KINDS: dict[str, Any] = {
    "ADDRESS": _address,
    "CLASS": _class_values,
    "NUMBER": _count,
    # A hyphen means stdout.
    "FILE": lambda text: "/dev/stdout" if text == "-" else text,
    "I/N": _shard,
    "K": lambda text: _count(text, 1),
    "LENGTH": _block_length,
    "N": lambda text: _count(text, 1),
    "MEASURE=BOTH,TRUTH,PRED": lambda text: [text],
    "NAME=VALUE": lambda text: [text],
    "P": float,
    "RUN_FILE": _run_file,
    "SET": _label_set,
    "VALUE": _class_values,
}
