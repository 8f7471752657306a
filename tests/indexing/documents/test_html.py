"""HTML: what is text, what is boilerplate, and which ids lead to a section."""

from collections.abc import Callable
from pathlib import Path

import pytest

from semsearch.indexing.documents.html import read_html_text
from semsearch.indexing.documents.passages import DocumentPassage, Splitter, divide

WORDS = "one two three four five six seven eight nine ten eleven twelve"


@pytest.fixture
def passages(make_splitter: Callable[..., Splitter]) -> Callable[..., list[DocumentPassage]]:
    return lambda html, tokens=40: list(divide(read_html_text(html, Path("page.html")), make_splitter(tokens)))


CASES = {
    "boilerplate": (
        f"<body><header><h1>Site</h1></header><nav>n</nav><aside>a</aside><script>s</script><style>t</style>"
        f"<div role=search>r</div><div hidden>h</div><p>{WORDS}<footer>f</footer>",
        [((), "", WORDS)],
    ),
    "a main part": (f"<div>menu</div><main><h1 id=a>A</h1><p>{WORDS}</main>", [(("A",), "a", WORDS)]),
    "the header of an article": (
        f"<article><header><h1 id=a>A</h1></header><p>{WORDS}</article>",
        [(("A",), "a", WORDS)],
    ),
    "what authors mark": (
        f"<main>menu<div data-search-body><h1 id=a>A</h1><p>{WORDS}<p data-search-ignore>{WORDS}</div></main>",
        [(("A",), "a", WORDS)],
    ),
    "Sphinx": (
        f'<div role="main"><section id="a"><h1>A<a class="headerlink" href="#a">¶</a></h1><p>{WORDS}</p>'
        f'<section id="b"><span id="c"></span><h2>B</h2><p>{WORDS}</p></section></section></div>',
        [(("A",), "a", WORDS), (("A", "B"), "b", WORDS)],
    ),
    "descriptions": (
        f'<h1 id="m">M</h1><dl><dt id="m.f">f(x)</dt><dd><p>{WORDS}</p><dl><dt id="m.f.g">g()</dt><dd>{WORDS}</dd></dl>'
        f"</dd></dl><p>After {WORDS}</p>",
        [(("M", "f(x)"), "m.f", WORDS), (("M", "f(x)", "g()"), "m.f.g", WORDS), (("M",), "m", f"After {WORDS}")],
    ),
    "what Sphinx generates": (
        f'<h1 id="m">M</h1><dl><dt id="m.f">f(x)<a href="s.html"><span class="viewcode-link">[source]</span></a></dt>'
        f'<dd>{WORDS}</dd></dl><table class="indextable genindextable"><tr><td><a href="m.html">f</a></table>',
        [(("M",), "m", "M"), (("M", "f(x)"), "m.f", WORDS)],
    ),
    "an old anchor": (f"<h2><a name=x></a>A</h2>{WORDS}", [(("A",), "x", WORDS)]),
    "blanks, breaks and lists": (
        f"<h1>A</h1><p>one\n  <b>two</b>,<br>three</p><ul><li>four<li><p>{WORDS}</ul>",
        [(("A",), "", f"one two,\nthree\n- four\n- {WORDS}")],
    ),
    "code": (f"<pre>  def a():\n    {WORDS}\n</pre>", [((), "", f"def a():\n    {WORDS}")]),
    "a table": (f"<table><tr><th>a<th>b<tr><td>1<td>{WORDS}</table>", [((), "", f"a | b\n1 | {WORDS}")]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_page_becomes_passages(case: str, passages: Callable[..., list[DocumentPassage]]) -> None:
    html, expected = CASES[case]
    assert [(each.headings, each.anchor, each.text) for each in passages(html)] == expected


def test_a_long_table_is_divided_at_rows(passages: Callable[..., list[DocumentPassage]]) -> None:
    rows = "".join(f"<tr><td>n{row}<td>one two three four five" for row in range(9))
    found = passages(f"<table><tr><th>name<th>use{rows}</table>", tokens=30)
    assert [each.table for each in found] == ["", *["name | use"] * (len(found) - 1)]
    assert "\n".join(each.text for each in found).count("\n") == 9


def test_the_title_is_the_first_heading_or_the_one_of_the_head() -> None:
    assert read_html_text("<title>T</title><h1> A <i>b</i></h1>x", Path("p.html")).title == "A b"
    assert read_html_text("<title> T </title>x", Path("p.html")).title == "T"
    assert read_html_text("x", Path("p.html")).title == "p"


def test_a_page_is_nested_as_deeply_as_it_likes(passages: Callable[..., list[DocumentPassage]]) -> None:
    assert [each.text for each in passages("<div>" * 20_000 + "deep")] == ["deep"]
