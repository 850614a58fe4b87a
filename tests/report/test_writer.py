import os
import stat
from pathlib import Path

import pytest
from report_examples import crash, illusion

from gate.errors import UsageError
from gate.report.formats import DEFAULT_FORMATS, FORMATS
from gate.report.jsonfile import loads
from gate.report.writer import check_folder, write_reports

needs_rights = pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")


def test_every_report_is_written_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "report"
    written = write_reports(crash(), folder, FORMATS)
    assert [path.name for path in written] == [
        "result.json", "junit.xml", "comment.md", "report.md", "results.sarif", "annotations.txt",
        "console.txt",
    ]  # fmt: skip
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in written)
    for path in written:
        assert path.read_bytes().decode("utf-8")
        assert stat.S_IMODE(path.stat().st_mode) & 0o400


def test_the_reports_of_a_result_can_be_made_again_byte_for_byte(tmp_path: Path) -> None:
    write_reports(crash(), tmp_path / "a", FORMATS)
    again = loads((tmp_path / "a" / "result.json").read_bytes())
    write_reports(again, tmp_path / "b", FORMATS)
    for kind in FORMATS.values():
        assert (tmp_path / "a" / kind.file).read_bytes() == (
            tmp_path / "b" / kind.file
        ).read_bytes()


def test_a_run_writes_four_reports_by_default(tmp_path: Path) -> None:
    assert [path.name for path in write_reports(illusion(), tmp_path)] == [
        FORMATS[name].file for name in DEFAULT_FORMATS
    ]


def test_an_older_report_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("old")
    write_reports(illusion(), tmp_path, ["json"])
    assert loads((tmp_path / "result.json").read_bytes()) == illusion()


def test_a_link_with_a_report_s_name_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "result.json").symlink_to(victim)
    write_reports(illusion(), folder, ["json"])
    assert victim.read_text() == "mine"
    assert not (folder / "result.json").is_symlink()


def test_a_link_in_the_folder_s_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "report").symlink_to(tmp_path / "elsewhere")
    for call in (lambda p: write_reports(illusion(), p), check_folder):
        with pytest.raises(UsageError, match="is a symbolic link; name the folder itself"):
            call(tmp_path / "report")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_that_appears_after_the_look_is_not_followed_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "is_symlink", lambda self: False)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "report").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="cannot be written"):
        write_reports(illusion(), tmp_path / "report")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_above_a_relative_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="out is a symbolic link"):
        check_folder(Path("out/report"))
    check_folder(Path("fine/report"))
    check_folder(Path())


def test_a_file_in_the_folder_s_place_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("")
    with pytest.raises(UsageError, match=r"report: cannot be written .*; name another folder"):
        check_folder(tmp_path / "report")


def test_a_folder_in_a_report_s_place_is_a_usage_error_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "comment.md").mkdir()
    with pytest.raises(UsageError, match="cannot be written"):
        write_reports(illusion(), tmp_path, ["comment"])
    assert [path.name for path in tmp_path.iterdir()] == ["comment.md"]


@needs_rights
def test_a_folder_without_write_permission_is_a_usage_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="Permission denied"):
        check_folder(tmp_path)


def test_checking_a_folder_leaves_it_empty(tmp_path: Path) -> None:
    check_folder(tmp_path / "report")
    assert list((tmp_path / "report").iterdir()) == []


def test_an_unknown_report_is_named_with_what_is_near_before_anything_is_written(
    tmp_path: Path,
) -> None:
    with pytest.raises(UsageError, match=r"no report 'junitt' \(did you mean junit\?\)"):
        write_reports(illusion(), tmp_path, ["json", "junitt"])
    assert list(tmp_path.iterdir()) == []
