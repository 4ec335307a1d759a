"""The command explore."""

import pytest

import segiou
from segiou.cli.main import main


def test_the_page_is_written_and_its_path_printed(tmp_path, capsys):
    path = tmp_path / "iou.html"
    assert main(["explore", "--output", str(path), "--no-open"]) == 0
    assert capsys.readouterr().out.strip() == str(path)
    assert path.read_text(encoding="utf-8") == segiou.explore().to_html()


def test_folders_of_the_page_exist(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["explore", "--no-open", "--output", "no/x.html"]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_names_of_files_cannot_move_the_cursor(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["explore", "--no-open", "--output", "pa\x1b[2Jge.html"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_help(capsys):
    with pytest.raises(SystemExit):
        main(["explore", "--help"])
    shown = capsys.readouterr().out
    assert "interactive page about IoU" in shown and "  -o, --output FILE " in shown
