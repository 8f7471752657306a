"""Messages in Python name arguments; those of the command name options."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from semsearch import BundleError, CorpusError, OptionError, changing, index
from semsearch.engine.errors import ExpectedError, naming_options
from semsearch.evaluation.evaluation import MESSAGE_NAMES
from semsearch.indexing.argument_names import OPTION, argument_names, as_arguments, naming_arguments
from semsearch.indexing.options import names_of_arguments
from tests.command_line import run
from tests.indexing.coats import coats
from tests.project import ROOT

NAMES = names_of_arguments(index)
WORDS = {"cpu", "cuda", "cosine", "none"}  # values of options that messages name


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("name the one to embed with --text-column", "name the one to embed with text_column="),
        ("correct --stem, or name --id-column; try", "correct stem=, or name id_column=; try"),
        ("--replace leaves them out, --add keeps them", 'mode="replace" leaves them out, mode="add" keeps them'),
        ("--split: found a column, since --split adds it", "split: found a column, since split=True adds it"),
        ("--embeddings: found 3", "embeddings: found 3"),
        ("leave --strict out, or add --no-keywords", "leave strict=True out, or add keywords=False"),
        ("index with --stem german (or --stem none)", 'index with stem="german" (or stem="none")'),
        ("with --out, or --text-column '' --id-column ''", 'with out=, or text_column="" id_column=""'),
        ("out of filters with --column 'a b=none'", 'out of filters with column={"a b": "none"}'),
        ("another type with --column year=TYPE", 'another type with column={"year": "TYPE"}'),
        ("add --separator ';'", 'add separator=";"'),
        ("set it with --fusion-weight 0.3", "set it with fusion_weight=0.3"),
        ("did you mean --column 'year'?", 'did you mean column="year"?'),
        ("make one with `semsearch index PATH --out my bundle`", 'make one with `index(PATH, out="my bundle")`'),
        ("run `semsearch index` again, with --model", "run `index` again, with model="),
        ("run `semsearch verify BUNDLE`", "run `semsearch verify BUNDLE`"),
        ("`semsearch index PATH --unknown 3`", "`semsearch index PATH --unknown 3`"),
        ("`pip install --no-deps model`, a --long-dash", "`pip install --no-deps model`, a --long-dash"),
        ("nothing--here, and -- alone", "nothing--here, and -- alone"),
    ],
)
def test_options_of_a_message_become_arguments(message: str, expected: str) -> None:
    assert as_arguments(message, NAMES) == expected
    assert as_arguments(expected, NAMES) == expected
    with naming_options():
        assert as_arguments(message, NAMES) == message


def test_notes_of_an_error_name_arguments_too() -> None:
    error = ExpectedError("choose another --model")
    error.add_note("or name --device cpu")
    with pytest.raises(ExpectedError, match=r"^choose another model="), naming_arguments(NAMES):
        raise error
    assert error.__notes__ == ['or name device="cpu"']


def messages(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts of a room's code that are no docstrings, with HOLE for each value, and their modules."""
    for module in sorted(folder.rglob("*.py")):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                pieces = [str(part.value) if isinstance(part, ast.Constant) else "HOLE" for part in node.values]
                yield module.name, "".join(pieces)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements | parts:
                yield module.name, node.value


def test_all_messages_of_the_code_can_be_read_in_python() -> None:
    rooms = [*messages(ROOT / "semsearch/indexing"), *messages(ROOT / "semsearch/evaluation")]
    known = NAMES | MESSAGE_NAMES
    found = [each for each in rooms if re.search(r"(?<![\w-])--[a-z]", each[1])]
    assert len(found) > 30
    for module, message in found:
        if "pip install" in message:
            continue
        assert not re.search(r"(?<![\w-])--[a-z]", as_arguments(message, known)), (module, message)
        for option in OPTION.finditer(message):
            value = option["value"]
            if value is not None and known[option["option"]].endswith("="):
                is_value = value.startswith("'") or value.isupper() or "HOLE" in value or value in WORDS
                assert is_value, (module, message, "a word behind an option reads as its value; put a comma between")


def test_arguments_are_those_of_a_signature() -> None:
    def function(place: str, *, is_quick: bool = False, top_k: int = 5, text: bool = True) -> None: ...

    assert argument_names(function) == {
        "place": "place=",
        "is-quick": "is_quick=True",
        "no-is-quick": "is_quick=False",
        "top-k": "top_k=",
        "text": "text=True",
        "no-text": "text=False",
    }


def test_errors_of_functions_name_arguments_and_those_of_the_command_options(out: Path, tmp_path: Path) -> None:
    rows = tmp_path / "coats.csv"
    rows.write_text("a,b\nx,y\n")
    with pytest.raises(CorpusError, match=r"with text_column=$"):
        index(rows, out=out)
    assert "with --text-column\n" in run("index", rows, "--out", out).err
    with pytest.raises(OptionError, match=r'^dtype: float16 is for a GPU; choose float32, or add device="cuda"$'):
        index(rows, out=out, dtype="float16")
    assert (
        "--dtype: float16 is for a GPU; choose float32, or add --device cuda\n"
        in run("index", rows, "--out", out, "--dtype", "float16").err
    )


def test_each_function_that_changes_an_index_names_arguments(out: Path, tmp_path: Path) -> None:
    index(coats(3), out=out, id_column="sku")
    with pytest.raises(BundleError, match='what becomes of them: mode="replace" leaves them out, mode="add" keeps'):
        index(coats(2), out=out)
    nothing = tmp_path / "nothing"
    with pytest.raises(BundleError) as missing:
        index(coats(2), out=out, update=nothing)
    assert f'make a bundle with `index(PATH, out="{nothing}")`' in str(missing.value)
    with changing(out) as texts, pytest.raises(CorpusError) as inside:  # already inside the block
        texts.add(out)
    assert f'update="{out}", or out="{out}", keeps its model' in str(inside.value)


def test_a_warning_names_arguments(out: Path) -> None:
    german = [
        f"Der schnelle Fuchs springt nicht ueber den faulen Hund, und das ist gut so, Nummer {n}." for n in range(60)
    ]
    warnings = index(german, out=out).warnings
    assert any('stem="none"' in warning for warning in warnings), warnings
