"""The command is the first word; wrong options end in one line that says what to do."""

from pathlib import Path

import pytest

from export.arguments import COMMANDS, parse_arguments


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ([], "export"),
        (["corpus", "--corpus", "f", "--out", "b"], "corpus"),
        (["--out", "corpus"], "export"),
        (["model", "corpus"], "model"),
        (["verify", "verify"], "verify"),
        (["./corpus"], "export"),
        (["some-model", "--corpus", "f"], "export"),
    ],
)
def test_the_command_is_the_first_word(words: list[str], command: str) -> None:
    assert parse_arguments(words).command == command


def test_a_command_after_an_option_is_refused_with_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["--out", "b", "corpus"])
    assert "corpus is a command: write it first, or ./corpus for a folder of that name" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["bundle/", "s3://b/p", "--region", "eu"],
        ["--region", "eu", "bundle/", "s3://b/p"],
        ["bundle/", "--region", "eu", "s3://b/p"],
    ],
)
def test_options_of_publish_may_stand_anywhere(words: list[str]) -> None:
    options = parse_arguments(["publish", *words])
    assert (options.bundle, options.url, options.to, options.region) == (Path("bundle"), "s3://b/p", None, "eu")


def test_options_of_rollback_may_stand_before_the_version() -> None:
    options = parse_arguments(["rollback", "s3://b/p", "--profile", "mine", "abcd"])
    assert (options.url, options.profile, options.version) == ("s3://b/p", "mine", "abcd")


@pytest.mark.parametrize(
    ("words", "bundle", "out"),
    [
        ([], "bundle", "bundle-s3vectors"),
        (["texts/news/"], "texts/news", "texts/news-s3vectors"),
        (["news", "--out", "small"], "news", "small"),
    ],
)
def test_publish_to_s3_vectors_writes_the_small_bundle_beside_the_first(
    words: list[str], bundle: str, out: str
) -> None:
    options = parse_arguments(["publish", "--to", "s3vectors", "bucket/index", *words])
    assert (options.bundle, options.out, options.to) == (Path(bundle), Path(out), ["s3vectors", "bucket/index"])


def test_a_bundle_that_is_the_current_folder_gets_its_small_one_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "news").mkdir()
    monkeypatch.chdir(tmp_path / "news")
    assert parse_arguments(["publish", ".", "--to", "s3vectors", "b/i"]).out == tmp_path / "news-s3vectors"


def test_ray_takes_an_address_or_none() -> None:
    words = ["corpus", "--corpus", "texts.csv", "--ray"]
    assert [parse_arguments([*words, *address]).ray for address in ([], ["host:6379"])] == ["", "host:6379"]


def test_ray_is_for_texts_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["--ray"])
    assert "--ray embeds texts of your own on a cluster; name them with --corpus" in capsys.readouterr().err


def test_an_address_in_s3_without_a_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["corpus", "--corpus", "s3://bucket"])
    assert "found 's3://bucket', expected s3://BUCKET/KEY of a file or a folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_model_with_the_name_of_a_command_can_be_named(name: str) -> None:
    options = parse_arguments([f"./{name}"])
    assert (options.command, Path(options.model)) == ("export", Path(name))
    assert parse_arguments(["model", name, "--out", "b"]).model == name


def test_without_a_command_the_model_may_stand_anywhere() -> None:
    for words in (["m", "--out", "b"], ["--out", "b", "m"]):
        options = parse_arguments(words)
        assert (options.command, options.model, options.out) == ("export", "m", Path("b"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["corpus"], "the following arguments are required: --corpus"),
        (["corpus", "--corpus", "x.csv", "--remove-corpus"], "unrecognized arguments: --remove-corpus"),
        (["model", "--remove"], "unrecognized arguments: --remove"),  # nothing is removed by an abbreviation
        (["--text-column", "t"], "--text-column names a column of a file; name the file with --corpus FILE"),
        (["--id-column", "t"], "--id-column names a column of a file; name the file with --corpus FILE"),
        (["model", "--calibration-column", "t"], "name the file with --calibration FILE"),
        (["model", "--corpus", "x.csv"], "unrecognized arguments: --corpus"),
    ],
)
def test_an_error_names_the_missing_or_unknown_argument(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        parse_arguments(words)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_columns_may_be_typed_one_by_one_and_have_an_equals_sign_in_their_name() -> None:
    words = ["corpus", "--corpus", "f", "--column", "year=number", "--column=a=b=none"]
    assert parse_arguments(words).column == [("year", "number"), ("a=b", "none")]


@pytest.mark.parametrize("wrong", ["year", "year=", "=number", "year=int", "year=Number"])
def test_a_column_of_an_unknown_type_is_refused(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["corpus", "--corpus", "f", "--column", wrong])
    expected = f"found {wrong!r}, expected NAME=TYPE with a type of string, number, boolean, date, list, none"
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--stem", "klingon"], "argument --stem: found 'klingon', expected one of none, "),
        (["--fusion-weight", "1.5"], "argument --fusion-weight: found '1.5', expected a number from 0 to 1"),
        (["--fusion-weight", "nan"], "argument --fusion-weight: found 'nan', expected a number from 0 to 1"),
        (["--fusion-weight", "much"], "argument --fusion-weight: found 'much', expected a number from 0 to 1"),
        (["--fusion-weight", "0.5", "--fusion", "rrf"], "--fusion-weight is for --fusion convex; rrf has no weight"),
        (["--no-keywords", "--stem", "none"], "--stem is about keywords, and --no-keywords leaves them out"),
        (["--no-keywords", "--fusion-weight", "0"], "--fusion-weight is about keywords, and --no-keywords leaves"),
    ],
)
def test_keyword_options_that_mean_nothing_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments(words)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
