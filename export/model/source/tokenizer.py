"""Write tokenizer.json as the bundle's tokenizer, after checking that the model has an embedding for each token."""

from pathlib import Path

from tokenizers import Tokenizer, normalizers

from export.error_text import first_line
from export.model.source.model_files import ModelError
from export.model.source.source import Source
from function.engine.tokenizer import save_tokenizer

REMEDY = "save the model again with its own fast tokenizer"


def write_tokenizer(source: Source, path: Path) -> None:
    """Write the tokenizer without its padding and truncation, lower-casing if the model does.

    Raises ModelError if tokenizer.json cannot be read, has no vocabulary, has tokens without an embedding in the
    model, or if special tokens and prompt leave no room for a text.
    """
    tokenizer = _read_tokenizer(source)
    if source.lower_case:
        steps = [normalizers.Lowercase(), *([tokenizer.normalizer] if tokenizer.normalizer else [])]
        tokenizer.normalizer = normalizers.Sequence(steps)
    _check_room(source, tokenizer)
    save_tokenizer(tokenizer, path)


def _read_tokenizer(source: Source) -> Tokenizer:
    """Return the tokenizer without padding and truncation. Raises ModelError if it is damaged or does not fit."""
    path = source.folder / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        special_tokens = tokenizer.encode("").ids
    except Exception as error:  # the library raises nothing more specific
        raise ModelError(
            f"{path}: cannot be read ({first_line(error)}); expected the JSON of a fast tokenizer; {REMEDY}"
        ) from error
    ids = tokenizer.get_vocab(with_added_tokens=True).values()
    if not tokenizer.get_vocab_size(with_added_tokens=False):
        raise ModelError(f"{path}: has an empty vocabulary; expected the tokens of the model; {REMEDY}")
    if max(*ids, *special_tokens) >= source.vocabulary_size:
        raise ModelError(
            f"{path}: has tokens with ids up to {max(*ids, *special_tokens)}, expected ids below "
            f"{source.vocabulary_size}, the vocab_size of config.json; {REMEDY}"
        )
    if not special_tokens:
        raise ModelError(
            f"{path}: puts no special tokens around a text, expected some, as [CLS] and [SEP] are, since an empty "
            f"text would have no embedding; {REMEDY}"
        )
    return tokenizer


def _check_room(source: Source, tokenizer: Tokenizer) -> None:
    """Raise ModelError if the special tokens and the longest prompt fill the longest input of the model."""
    for role, prompt in {"": "", **source.prompts}.items():
        taken = len(tokenizer.encode(prompt).ids)
        if taken >= source.max_tokens:
            what = f"the special tokens and the prompt for a {role}" if role else "the special tokens"
            raise ModelError(
                f"{source.folder}: {what} take {taken} of {source.max_tokens} tokens, which leaves no room for a "
                "text; expected a longer input; correct max_seq_length in sentence_bert_config.json, or the prompts"
            )
