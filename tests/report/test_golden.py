from report_golden import FOLDER, golden


def test_every_example_reads_as_it_was_read_before() -> None:
    for name, text in golden().items():
        assert (FOLDER / name).read_bytes().decode() == text, name


def test_there_is_no_golden_file_without_an_example() -> None:
    held = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    assert held == set(golden())
