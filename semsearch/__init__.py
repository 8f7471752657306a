"""Search your own texts by meaning and by words: `from semsearch import Search, index`, and the command `semsearch`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semsearch.client import ColumnSummary, Hit, Hits, ManyHits, Search, ServerError
    from semsearch.engine.bundle import BundleError
    from semsearch.engine.errors import OptionError
    from semsearch.engine.loading import load_bundle
    from semsearch.engine.tensors import TensorsError
    from semsearch.evaluation.evaluation import Differences, Evaluation, evaluate
    from semsearch.indexing.corpus import CorpusError
    from semsearch.indexing.errors import PackagesError
    from semsearch.indexing.make import IndexSummary, changing, index, remove
    from semsearch.indexing.models.modules import ModelError

__all__ = [
    "BundleError",
    "ColumnSummary",
    "CorpusError",
    "Differences",
    "Evaluation",
    "Hit",
    "Hits",
    "IndexSummary",
    "ManyHits",
    "ModelError",
    "OptionError",
    "PackagesError",
    "Search",
    "ServerError",
    "TensorsError",
    "changing",
    "evaluate",
    "index",
    "load_bundle",
    "remove",
]

MODULE_OF = {  # modules other than `client`
    **dict.fromkeys(("IndexSummary", "changing", "index", "remove"), "indexing.make"),
    **dict.fromkeys(("Differences", "Evaluation", "evaluate"), "evaluation.evaluation"),
    "BundleError": "engine.bundle",
    "CorpusError": "indexing.corpus",
    "ModelError": "indexing.models.modules",
    "OptionError": "engine.errors",
    "PackagesError": "indexing.errors",
    "TensorsError": "engine.tensors",
    "load_bundle": "engine.loading",
}


def __getattr__(name: str) -> Any:
    """Import what is used, when it is used: the function in Lambda needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module 'semsearch' has no attribute {name!r}")
    return getattr(import_module(f"semsearch.{MODULE_OF.get(name, 'client')}"), name)
