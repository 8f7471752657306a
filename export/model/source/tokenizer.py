"""Write tokenizer.json as the bundle's tokenizer, after checking that the model has an embedding for each token."""

from pathlib import Path

from tokenizers import Tokenizer, normalizers

from export.model.source.model_files import ModelError, reading
from export.model.source.source import Source
from function.engine.tokenizer import save_tokenizer


def write_tokenizer(source: Source, path: Path) -> None:
    """Write the tokenizer without its padding and truncation, lower-casing if the model does.

    Raises ModelError if tokenizer.json cannot be read, if the model has no embedding for one of its tokens, or if
    special tokens and prompt leave no room for a text.
    """
    file = source.folder / "tokenizer.json"
    with reading(file):
        tokenizer = Tokenizer.from_file(str(file))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        special_tokens = tokenizer.encode("").ids
        largest = max(*tokenizer.get_vocab(with_added_tokens=True).values(), *special_tokens)
    if largest >= source.vocabulary_size or not special_tokens:
        raise ModelError(
            f"{file}: has ids up to {largest} and {len(special_tokens)} special tokens around a text; expected ids "
            f"below {source.vocabulary_size}, the model's embeddings, and at least one special token, because an empty "
            "text needs an embedding too; save the model again with its own fast tokenizer"
        )
    if source.lower_case:
        steps = [normalizers.Lowercase(), *([tokenizer.normalizer] if tokenizer.normalizer else [])]
        tokenizer.normalizer = normalizers.Sequence(steps)
    for role, prompt in {"": "", **source.prompts}.items():
        taken = len(tokenizer.encode(prompt).ids)
        if taken >= source.max_tokens:
            what = f"the special tokens and the prompt for a {role}" if role else "the special tokens"
            raise ModelError(
                f"{source.folder}: {what} take {taken} of {source.max_tokens} tokens, which leaves no room for a "
                "text; expected a longer input; correct max_seq_length in sentence_bert_config.json, or the prompts"
            )
    save_tokenizer(tokenizer, path)
