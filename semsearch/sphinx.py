"""The extension `semsearch.sphinx` of Sphinx."""

from semsearch.site.sphinx_extension import setup

__all__ = ["setup"]
