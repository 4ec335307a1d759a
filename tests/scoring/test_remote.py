"""Addresses score in place: a real S3-speaking server, a web server, and chains of fsspec."""

from __future__ import annotations

import http.server
import shutil
import threading
from functools import partial

import numpy as np
import pytest
from mask_files import png

import segiou
from segiou import DataError
from segiou.cli.main import main
from segiou.masks import RemoteFolder
from segiou.runs.image_counts import Stamp

scored = partial(segiou.score_folder, labels=4)


@pytest.fixture(scope="module")
def s3(masks, required):
    """An S3-speaking server on this machine, with the masks in a bucket."""
    required("s3fs")
    required("moto")
    boto3 = required("boto3")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
    client = boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys)
    client.create_bucket(Bucket="masks")
    for path in sorted(masks.glob("*/*.png")):
        client.upload_file(str(path), "masks", f"set/{path.parent.name}/{path.name}")
    yield client, {"key": "testing", "secret": "testing", "endpoint_url": address}
    server.stop()


IGNORED = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.mark.gate
@IGNORED
def test_s3_scores_goes_on_and_sees_changes(s3, expected, tmp_path):
    client, options = s3
    places = ("s3://masks/set/truth", "s3://masks/set/pred")
    path = tmp_path / "r.sqlite"
    run = scored(*places, run=path, storage_options=options)
    assert run.total() == expected
    assert run.images[0].pred == "s3://masks/set/pred/00.png"
    assert "testing" not in path.read_bytes().decode("latin-1")
    assert scored(*places, storage_options=options).total() == expected

    read = []
    original = RemoteFolder.read
    changed = png(np.zeros((6, 8)))
    client.put_object(Bucket="masks", Key="set/pred/05.png", Body=changed)
    import fsspec

    fsspec.filesystem("s3", **options).invalidate_cache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            RemoteFolder, "read", lambda self, path: read.append(path) or original(self, path)
        )
        again = scored(*places, run=path, storage_options=options)
    assert sorted(read) == ["s3://masks/set/pred/05.png", "s3://masks/set/truth/05.png"]
    assert again.total() != expected
    assert again.total().pairs == 40


@pytest.mark.gate
@IGNORED
def test_what_is_not_in_the_bucket_is_named(s3, masks):
    _, options = s3
    with pytest.raises(DataError, match="s3://masks/none: does not exist"):
        scored("s3://masks/none", masks / "pred", storage_options=options)
    with pytest.raises(DataError, match="s3://nothing/none: "):
        scored("s3://nothing/none", masks / "pred", storage_options=options)


@pytest.fixture(scope="module")
def web(masks, packed):
    """A web server on this machine with the folders and the archives."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format, *args):
            """Say nothing."""

    root = packed / "web"
    root.mkdir()
    for side in ("truth", "pred"):
        shutil.copytree(masks / side, root / side)
    shutil.copy(packed / "pred.zip", root / "pred.zip")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@IGNORED
def test_http_and_a_zip_behind_it(web, masks, expected, required):
    required("fsspec")
    required("aiohttp")
    assert scored(f"{web}/truth/", masks / "pred").total() == expected
    with pytest.raises(DataError, match=f"{web}/gone: "):
        scored(f"{web}/gone", masks / "pred")


@IGNORED
def test_passwords_in_urls_are_used_but_never_shown_or_saved(
    web, masks, expected, required, tmp_path, capsys
):
    required("fsspec")
    required("aiohttp")
    address = web.replace("://", "://ann:s3cret@")
    command = ["score", f"{address}/truth", str(masks / "pred"), "--labels=4"]
    outputs = ["--run", str(tmp_path / "run"), "--html", str(tmp_path / "page.html")]
    assert main([*command, *outputs]) == 0
    assert segiou.Run.open(tmp_path / "run").total() == expected
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"segiou score {web}/truth" in page and "data:image/png" in page
    assert main([*command[:1], f"{address}/gone?token=s3cret", *command[2:]]) == 3
    assert main(["inspect", f"{address}/truth"]) == 0
    shown = capsys.readouterr()
    for written in (page, (tmp_path / "run").read_bytes().decode("latin-1"), *shown):
        assert "s3cret" not in written


def test_a_zip_by_its_address(packed, masks, expected, required):
    required("fsspec")
    run = scored(f"zip://::{packed}/truth.zip", masks / "pred")
    assert run.total() == expected


def test_an_address_that_nothing_knows(masks, required):
    required("fsspec")
    with pytest.raises(ValueError, match="gopher://x: is not a URL supported by fsspec"):
        scored("gopher://x", masks / "pred")


@pytest.mark.gate
def test_without_fsspec_the_extra_is_named(masks, monkeypatch):
    import importlib

    original = importlib.import_module

    def missing(name, *rest):
        if name.startswith("fsspec"):
            msg = "No module named 'fsspec'"
            raise ImportError(msg)
        return original(name, *rest)

    from segiou.masks.sources import remote as sources

    monkeypatch.setattr(sources, "import_module", missing)
    with pytest.raises(ImportError, match=r"pip install 'segiou\[remote\]'"):
        scored("s3://bucket/x", masks / "pred")


@pytest.mark.gate
def test_unknown_stamps_are_never_taken_for_unchanged():
    assert not Stamp(5, None).known
    assert not Stamp(None, "x").known
