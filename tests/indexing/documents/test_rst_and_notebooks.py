"""reStructuredText and notebooks: their text, headings and anchors."""

import json
from pathlib import Path
from typing import Any

import pytest

from semsearch.indexing.documents.document import Heading, UnreadableError
from semsearch.indexing.documents.notebook import LONGEST_OUTPUT, read_notebook
from semsearch.indexing.documents.rst import read_rst
from tests.indexing.documents.files import ReadPassages

GUIDE = """\
:orphan:

.. _label:

Guide
=====

See :ref:`a label <label>`, :func:`~snap.walk`, ``code`` and `a link <https://x.org>`_.

.. toctree::

   other

.. note:: A note.

.. code-block:: python
   :linenos:

   def f():
       return 1

.. py:function:: snap.walk(path)
   :canonical: x

   Walks.

.. module:: snap

.. class:: Tree(root)

   A tree.

   .. method:: leaves()

      All leaves.

.. option:: --repo PATH

   The repository.

.. program:: tide

.. option:: -q, --quiet

   Less.

.. tab-set::

   .. tab-item:: Debian

      apt

.. image:: a.png
   :alt: The logo

Again
-----

one

Again
-----

.. unknown:: argument
   :option: x

   content with `broken_ and *emphasis
"""


def test_the_text_of_directives_and_roles_stays(tmp_path: Path, passages: ReadPassages) -> None:
    found = passages(GUIDE, 400, ".rst")
    assert read_rst(tmp_path / "page.rst").title == "Guide"
    assert [(" > ".join(each.headings), each.anchor, each.text) for each in found] == [
        ("Guide", "guide", "See a label, walk, code and a link.\n\nNote\n\nA note.\n\ndef f():\n    return 1"),
        ("Guide > snap.walk(path)", "snap.walk", "Walks."),
        ("Guide > Tree(root)", "snap.Tree", "A tree."),
        ("Guide > Tree(root) > leaves()", "snap.Tree.leaves", "All leaves."),
        ("Guide > --repo PATH", "cmdoption-repo", "The repository."),
        ("Guide > -q, --quiet", "cmdoption-tide-q", "Less."),
        ("Guide", "guide", "Debian\n\napt\n\nThe logo"),
        ("Guide > Again", "again", "one"),
        ("Guide > Again", "id1", "argument\n\ncontent with `broken_ and *emphasis"),
    ]


DESCRIBED = """\
.. currentmodule:: snap.tree

.. class:: Leaf(a)

.. class:: tree.Twig

   .. method:: Twig.bend()

   .. attribute:: snap.tree.Twig.x

.. py:module:: None

.. function:: abstract static go(y)

.. function:: tree.house()

.. event:: a:b

.. object:: some words

   .. option:: -v

.. describe::

   content

.. confval:: x y

.. rst:directive:: .. note:: text

.. envvar:: HOME

.. program:: tide  rise

.. option:: --long=X, -l

.. option:: ---

.. program:: None

.. option:: --x:y
"""


def headings(rst: str, folder: Path) -> list[str]:
    """Return the headings of a document, and `-` for each end of a description."""
    (folder / "page.rst").write_text(rst)
    (part,) = read_rst(folder / "page.rst").parts
    found = [each for each in part.blocks if isinstance(each, Heading)]
    return [f"{each.text} #{each.anchor}" if each.text else "-" for each in found]


def test_a_description_has_the_anchor_of_sphinx(tmp_path: Path) -> None:
    assert headings(DESCRIBED, tmp_path) == [
        *("Leaf(a) #snap.tree.Leaf", "-"),
        *("tree.Twig #snap.tree.Twig", "Twig.bend() #snap.tree.Twig.bend", "-"),
        *("snap.tree.Twig.x #snap.tree.Twig.x", "-", "-"),
        *("abstract static go(y) #go", "-", "tree.house() #tree.house", "-"),
        *("a:b #event-a-b", "-", "-v #cmdoption-v", "-", "-", "x y #confval-x", "-"),
        *(".. note:: text #directive-note", "-", "HOME #envvar-HOME", "-"),
        *("--long=X, -l #cmdoption-tide-rise-long", "-", "-", "--x:y #cmdoption-x-y", "-"),
    ]


SPHINX = """\
.. only:: html

   Part
   ----

   text

.. container:: box

   in it

.. versionadded:: 3.1  and
   more

   notes

.. index:: a b
   :name: x

.. highlight:: python

.. rst-class:: big

.. code-block::

   a = 1

   b
.. sourcecode:: python
   :caption: cap

   c

:ref:`t <u>` :func:`!x.y` :meth:`~a.b.c` :mod:`a.b` :doc:`/x/y` :sub:`2` :py:class:`~k.L`
"""


def test_what_sphinx_alone_knows_is_text_where_it_shows_text(tmp_path: Path) -> None:
    assert headings(SPHINX, tmp_path) == ["Part #part"]
    (part,) = read_rst(tmp_path / "page.rst").parts
    assert part.text == ("Part\n\ntext\n\nin it\n\n3.1 and more\n\nnotes\n\na = 1\n\nb\n\nc\n\nt x.y c a.b /x/y 2 L")


INCLUSIONS = [
    ".. include:: {0}",
    ".. literalinclude:: {0}",
    ".. csv-table:: T\n   :file: {0}",
    ".. csv-table:: T\n   :url: file://{0}",
    ".. raw:: html\n   :file: {0}",
    ".. raw:: html\n   :url: file://{0}",
    ".. code-block::\n   :file: {0}",
]


@pytest.mark.parametrize("inclusion", INCLUSIONS)
def test_no_other_file_is_read(inclusion: str, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret,words")
    (tmp_path / "a.rst").write_text(f"Text.\n\n{inclusion.format(tmp_path / 'secret.txt')}\n\nEnd.")
    (part,) = read_rst(tmp_path / "a.rst").parts
    assert part.text.startswith("Text.")
    assert part.text.endswith("End.")
    assert "words" not in part.text


CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "source": ["# Analysis\n", "\n", "Some *text*."]},
    {"cell_type": "raw", "source": "raw"},
    {
        "cell_type": "code",
        "source": "print('hello')\ndf",
        "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["hello\n"]},
            {"output_type": "stream", "name": "stderr", "text": "warning"},
            {"output_type": "execute_result", "data": {"text/html": "<table>", "text/plain": "   a\n0  1"}},
            {"output_type": "execute_result", "data": {"text/plain": "42"}},
            {"output_type": "display_data", "data": {"image/png": "AAAA"}},
            {"output_type": "error", "traceback": ["boom"]},
        ],
    },
    {"cell_type": "markdown", "source": "## Result\n\nDone."},
]


def test_a_notebook_has_markdown_code_and_plain_outputs(tmp_path: Path, passages: ReadPassages) -> None:
    notebook = {"cells": CELLS, "metadata": {}, "nbformat": 4}
    found = passages(json.dumps(notebook), 400, ".ipynb")
    assert read_notebook(tmp_path / "page.ipynb", "github").title == "Analysis"
    assert [(each.headings, each.anchor, each.text) for each in found] == [
        (("Analysis",), "analysis", "Some text.\n\nprint('hello')\ndf\n\nhello\n\n42"),
        (("Analysis", "Result"), "result", "Done."),
    ]


def test_a_notebook_of_version_3_has_worksheets_and_headings(passages: ReadPassages) -> None:
    outputs = [
        {"output_type": "stream", "stream": "stdout", "text": ["printed\n"]},
        {"output_type": "stream", "stream": "stderr", "text": "warning"},
        {"output_type": "pyout", "text": ["return", "ed"]},
        {"output_type": "pyerr", "text": "boom"},
    ]
    cells = [
        {"cell_type": "heading", "source": "Top"},
        {"cell_type": "code", "input": ["a\n", "b"], "outputs": outputs},
        {"cell_type": "heading", "level": 2, "source": ["Head", "ing"]},
        {"cell_type": "code", "input": " \n", "outputs": outputs},
        {"cell_type": "code", "input": "c", "outputs": [{"output_type": "stream", "name": "stdout", "text": " \n"}]},
        {"cell_type": "code", "input": "d", "outputs": None},
    ]
    found = passages(json.dumps({"worksheets": [{"cells": cells[:2]}, {"cells": cells[2:]}]}), 400, ".ipynb")
    assert [(each.headings, each.text) for each in found] == [
        (("Top",), "a\nb\n\nprinted\n\nreturned"),
        (("Top", "Heading"), "c\n\nd"),
    ]


def test_outputs_of_a_notebook_are_cut(passages: ReadPassages) -> None:
    output = {"output_type": "stream", "name": "stdout", "text": "x" * (LONGEST_OUTPUT + 1)}
    cells = [{"cell_type": "code", "source": "a", "outputs": [output, output]}]
    (found,) = passages(json.dumps({"cells": cells}), 400, ".ipynb")
    assert found.text == "a\n\n" + "x" * LONGEST_OUTPUT


def test_half_a_surrogate_pair_in_a_notebook_is_replaced(passages: ReadPassages) -> None:
    cells = [{"cell_type": "markdown", "source": "A \ud83e\udd86 and a \ud83e."}]
    (found,) = passages(json.dumps({"cells": cells}), 400, ".ipynb")
    assert found.text == "A 🦆 and a �."


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"cells": 1}', '{"cells": [1]}'])
def test_another_file_is_no_notebook(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(content)
    with pytest.raises(UnreadableError, match="not a notebook"):
        read_notebook(tmp_path / "a.ipynb", "github")
