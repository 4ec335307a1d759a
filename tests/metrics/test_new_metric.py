"""A metric is added as the architecture page says: a function and its record, nothing else."""

import json
import subprocess
import sys

import pytest

NEW = """
import csv, io, json, sys
from importlib.util import find_spec, module_from_spec
from pathlib import Path

record = '''
    ClassMetric(
        "lack", lambda counts: 1 - per_class.iou(counts), "lack", "1 − IoU", "What {unit} lack."
    ),
'''
spec = find_spec("segiou.metrics.pixel_scores")
module = module_from_spec(spec)
sys.modules[spec.name] = module
source = Path(spec.origin).read_text(encoding="utf-8")
exec(source.replace("_SCORES = (", "_SCORES = (" + record, 1), module.__dict__)

import numpy as np
import segiou

truth, pred = np.repeat([0, 1], [6, 4]), np.array([0] * 3 + [1] * 7)
a = segiou.score([truth] * 6, [pred] * 6, labels=["a", "b"])
b = segiou.score([truth] * 6, [truth] * 6, labels=["a", "b"])
one = a.report(intervals=a.intervals("lack"))
page, text = one.to_html(columns="lack"), one.to_text(columns="lack", sort="lack")
row = next(csv.DictReader(io.StringIO(one.to_csv())))
data = json.loads(one.to_json())
print(json.dumps({
    "values": [row["lack"], data["classes"][0]["lack"],
               data["scores"]["lack"]["rows"]["a"]["value"],
               one.score("lack:a"), one.scores(names="lack")["lack/a"], one.classes[0].lack,
               a.intervals("lack:a").overall.value, one.to_pandas()["lack"]["a"],
               segiou.compare(a, b, metric="lack", groups="none").pairs[0].classes[0].a],
    "shown": ["50.00 %" in out for out in (text, one.to_markdown(columns="lack"), page)],
    "term": 'id="term-lack"' in page and "What pixels lack." in page,
    "latex": "50.00" in one.to_latex(columns="lack"),
    "bars": sorted(bar.get_width() for bar in one.plot("class_bars", metric="lack").patches),
    "worst": len(a.worst(1, by="lack")),
}))
"""


@pytest.mark.gate
def test_a_new_metric_is_in_every_output():
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NEW], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [float(value) for value in found["values"]] == [0.5] * 9
    assert found["shown"] == [True] * 3
    assert found["term"]
    assert found["latex"]
    assert found["bars"] == pytest.approx([3 / 7, 0.5])
