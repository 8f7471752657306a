"""tokenizer.json becomes the bundle's tokenizer, with the ids of transformers; one that does not fit is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from export.corpus import Corpus
from export.model.source.model_files import ModelError
from export.model.source.source import Source, read_source
from export.model.source.tokenizer import write_tokenizer
from function.engine.bundle import TOKENIZER
from function.engine.tokenizer import read_tokenizer
from tests.export.conftest import TINY_BERT


@pytest.fixture
def tokenizer(tiny_source: Source, tmp_path: Path) -> Tokenizer:
    write_tokenizer(tiny_source, tmp_path / TOKENIZER)
    return read_tokenizer(tmp_path / TOKENIZER)


def test_saved_padding_and_truncation_are_removed_from_the_tokenizer(tokenizer: Tokenizer) -> None:
    saved = Tokenizer.from_file(str(TINY_BERT / "tokenizer.json"))
    assert (len(saved.encode("a").ids), len(saved.encode("a " * 99).ids)) == (32, 32)
    assert (len(tokenizer.encode("a").ids), len(tokenizer.encode("a " * 99).ids)) == (3, 101)


def test_the_tokenizer_gives_the_ids_of_transformers(tokenizer: Tokenizer, corpus: Corpus) -> None:
    from transformers import AutoTokenizer

    original = AutoTokenizer.from_pretrained(TINY_BERT)
    for text in corpus.texts[:20]:
        assert tokenizer.encode(text).ids == original(text, truncation=False, padding=False)["input_ids"]


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads((folder / "tokenizer.json").read_text())
    edit(content)
    (folder / "tokenizer.json").write_text(json.dumps(content))


@pytest.mark.parametrize(("lower_case", "first"), [(True, "the"), (False, "[UNK]")])
def test_texts_are_lower_cased_where_the_sentence_transformer_does(
    tiny_copy: Path, tiny_source: Source, lower_case: bool, first: str
) -> None:
    change(tiny_copy, lambda content: content.update(normalizer=None))  # tells capitals from small letters
    write_tokenizer(replace(tiny_source, folder=tiny_copy, lower_case=lower_case), tiny_copy / TOKENIZER)
    assert read_tokenizer(tiny_copy / TOKENIZER).encode("The harbour").tokens == ["[CLS]", first, "harbour", "[SEP]"]


def test_lower_casing_comes_before_the_tokenizers_own_normalizer(tiny_source: Source, tmp_path: Path) -> None:
    write_tokenizer(replace(tiny_source, lower_case=True), tmp_path / TOKENIZER)
    tokenizer = read_tokenizer(tmp_path / TOKENIZER)
    assert tokenizer.encode("The  HARBOUR\u0301").ids == tokenizer.encode("the harbour").ids


# Tokenizers that are refused


def refusal(folder: Path, **changes: Any) -> str:
    """Return the one line with which the tokenizer of the model in the folder is refused."""
    source = replace(read_source(folder, "tests/broken"), **changes)
    with pytest.raises(ModelError) as caught:
        write_tokenizer(source, folder / TOKENIZER)
    message = str(caught.value)
    assert not (folder / TOKENIZER).exists()
    assert "\n" not in message
    assert message.startswith(str(folder))
    assert "expected" in message
    return message


def test_a_file_that_is_not_a_tokenizers_json_is_refused(tiny_copy: Path) -> None:
    (tiny_copy / "tokenizer.json").write_bytes(b'{"model": {"type": "NoSuch"}}')
    assert f"{tiny_copy / 'tokenizer.json'}: cannot be read as a model (" in refusal(tiny_copy)


def one_added_token_more(content: dict[str, Any]) -> None:
    content["added_tokens"].append(content["added_tokens"][0] | {"id": 591, "content": "[NEW]"})


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (one_added_token_more, "has ids up to 591 and 2 special tokens around a text; expected ids below 591"),
        (lambda content: content.update(post_processor=None), "has ids up to 590 and 0 special tokens around a text"),
    ],
)
def test_a_tokenizer_that_does_not_fit_the_model_is_refused(
    tiny_copy: Path, edit: Callable[[dict[str, Any]], object], found: str
) -> None:
    change(tiny_copy, edit)
    assert f"tokenizer.json: {found}" in refusal(tiny_copy)


def test_a_vocabulary_smaller_than_the_embedding_table_is_accepted(tiny_copy: Path) -> None:
    write_tokenizer(replace(read_source(tiny_copy, "tests/padded"), vocabulary_size=600), tiny_copy / TOKENIZER)
    assert (tiny_copy / TOKENIZER).is_file()


def test_a_length_that_the_special_tokens_fill_is_refused(tiny_copy: Path) -> None:
    assert "the special tokens take 2 of 2 tokens, which leaves no room for a text" in refusal(tiny_copy, max_tokens=2)


@pytest.mark.parametrize("role", ["query", "document"])
def test_a_prompt_that_fills_the_longest_input_is_refused(tiny_copy: Path, role: str) -> None:
    found = refusal(tiny_copy, prompts={role: "the harbour " * 15})
    assert f"the special tokens and the prompt for a {role} take 32 of 32 tokens" in found


def test_a_prompt_that_leaves_room_for_a_token_is_accepted(tiny_source: Source, tmp_path: Path) -> None:
    write_tokenizer(replace(tiny_source, prompts={"query": "the harbour " * 14 + "the"}), tmp_path / TOKENIZER)
    assert (tmp_path / TOKENIZER).is_file()
