"""HTML and pages that generators build: what is text, which of them are pages, their ids, languages and versions."""

from collections.abc import Callable
from pathlib import Path

import pytest

from semsearch.engine.bundle import read_manifest
from semsearch.indexing.documents.document import Block, Heading
from semsearch.indexing.documents.folder import copied_page
from semsearch.indexing.documents.html import LONGEST_HEADING, read_html_text
from semsearch.indexing.documents.pages import path_columns
from semsearch.indexing.documents.passages import Splitter
from tests.command_line import run, summary
from tests.indexing.documents.files import ReadPassages
from tests.indexing.documents.test_reading import open_passages

WORDS = "one two three four five six seven eight nine ten eleven twelve"

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
    "the anchor of a group of headings": (
        f"<hgroup id=a><h1>A</h1><p>what it is</p></hgroup><p>{WORDS}",
        [(("A",), "a", f"what it is\n\n{WORDS}")],
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
        [
            (("M",), "m", "M"),
            (("M", "f(x)"), "m.f", WORDS),
            (("M", "f(x)", "g()"), "m.f.g", WORDS),
            (("M",), "m", f"After {WORDS}"),
        ],
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
}


@pytest.mark.parametrize("case", CASES)
def test_a_page_becomes_passages(case: str, passages: ReadPassages) -> None:
    html, expected = CASES[case]
    assert [(each.headings, each.anchor, each.text) for each in passages(html, suffix=".html")] == expected


def test_a_long_table_is_divided_at_rows(passages: ReadPassages) -> None:
    rows = "".join(f"<tr><td>n{row}<td>one two three four five" for row in range(9))
    found = passages(f"<table><tr><th>name<th>use{rows}</table>", 30, ".html")
    assert [each.table for each in found] == ["", *["name | use"] * (len(found) - 1)]
    assert "\n".join(each.text for each in found).count("\n") == 9


def test_a_part_of_a_long_row_and_the_header_of_its_table_fit_in_a_passage(
    passages: ReadPassages, make_splitter: Callable[..., Splitter]
) -> None:
    row = " ".join(f"w{number}" for number in range(99))
    found = passages(f"<table><tr><th>the name of it<th>what it is used for<tr><td>n<td>{row}</table>", 40, ".html")
    assert len(found) > 2
    assert all(make_splitter(40).count(f"{each.table}\n{each.text}") <= 40 for each in found)


LEADS = {
    "an entry begins a passage": (
        "<h2 id=codes>Codes</h2><p>All of them:</p><table><tr><th>Code<th>Use<tr id=err_a><td>ERR_A<td>a"
        "<tr><td><a name=err_b></a>ERR_B<td>b<tr><td>none<td>c</table><p>After</p>",
        40,
        [
            ("codes", "All of them:", ""),
            ("err_a", "ERR_A | a", "Code | Use"),
            ("err_b", "ERR_B | b\nnone | c\n\nAfter", "Code | Use"),
        ],
    ),
    "an entry directly below a heading": (
        "<h2 id=codes>Codes</h2><p id=err_a>ERR_A</p><p id=err_b>ERR_B</p>",
        40,
        [("err_a", "ERR_A", ""), ("err_b", "ERR_B", "")],
    ),
    "text below a heading leads to the heading": (
        "<h2 id=h>H</h2><p id=p1>one two</p><p id=p2>three</p>",
        40,
        [("h", "one two\n\nthree", "")],
    ),
    "below a heading without an anchor, the first anchor of a passage": (
        "<h2>H</h2><p>one two</p><p id=p1>three</p><p id=p2>four",
        40,
        [("p1", "one two\n\nthree\n\nfour", "")],
    ),
    "before all headings, the top or the anchor before": (
        "<p>one</p><p id=p1>two</p><hr><p id=p2>three four five six seven eight</p>",
        7,
        [("", "one\n\ntwo", ""), ("p2", "three four five six seven eight", "")],
    ),
    "what fits is not divided": (
        "<h2 id=h>H</h2><p>a b c d e</p><p id=p1>f g h i j</p>",
        20,
        [("h", "a b c d e\n\nf g h i j", "")],
    ),
    "what does not fit is divided before an anchor": (
        "<h2 id=h>H</h2><p>a b c d e</p><p id=p1>f g h i j</p><p>k l m n o</p><p>p q r s t</p>",
        19,
        [("h", "a b c d e", ""), ("p1", "f g h i j\n\nk l m n o\n\np q r s t", "")],
    ),
    "but not after less than a quarter of a passage": (
        "<h2 id=h>H</h2><p>a b</p><p id=p1>f g h i j</p><p>k l m n o</p><p>p q r s t</p><p>u",
        17,
        [("h", "a b\n\nf g h i j\n\nk l m n o\n\np q r s t", ""), ("p1", "u", "")],
    ),
    "a part of a long paragraph leads to its anchor": (
        "<h2 id=h>H</h2><p>a</p><p id=err_a>ERR_A b c d. e f g h.</p>",
        8,
        [("h", "a", ""), ("err_a", "ERR_A b c d.", ""), ("err_a", "e f g h.", "")],
    ),
}


@pytest.mark.parametrize("case", LEADS)
def test_a_passage_leads_to_the_anchor_of_its_text(case: str, passages: ReadPassages) -> None:
    html, tokens, expected = LEADS[case]
    found = passages(html, tokens, ".html")
    assert [(each.place, each.text, each.table) for each in found] == expected
    assert {each.anchor for each in found} == {"h" if "id=h" in html else "codes" if "id=codes" in html else ""}


def test_the_address_of_a_passage_has_its_anchor_and_the_id_that_of_its_section(
    tmp_path: Path, bundle_copy: Path
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.html").write_text("<h1 id=codes>Codes</h1><p>x<p id=err_a>ERR_A<p id=err_b>ERR_B")
    assert run("index", tmp_path / "site", "--out", bundle_copy, "--replace").code == 0
    found = {each.id: each.metadata["url"] for each in open_passages(bundle_copy)}
    assert found == {
        "a.html#codes:1": "a.html#codes",
        "a.html#codes:2": "a.html#err_a",
        "a.html#codes:3": "a.html#err_b",
    }


def test_the_title_is_the_first_heading_or_the_one_of_the_head() -> None:
    several = "<h1>1. Causes</h1>x<h1>2. Repairs</h1>y"
    assert read_html_text(f"<title>How it breaks</title>{several}", Path("p.html")).title == "How it breaks"
    assert read_html_text(f"<title>1. causes | Site</title>{several}", Path("p.html")).title == "1. Causes"
    assert read_html_text(several, Path("p.html")).title == "1. Causes"
    assert read_html_text("<title>T</title><h1> A <i>b</i></h1>x", Path("p.html")).title == "A b"
    assert read_html_text("<title> T </title>x", Path("p.html")).title == "T"
    assert read_html_text("x", Path("p.html")).title == "p"


def test_a_page_is_nested_as_deeply_as_it_likes(passages: ReadPassages) -> None:
    assert [each.text for each in passages("<div>" * 5_000 + "deep", suffix=".html")] == ["deep"]


TEXTS = {
    "tabs of Docusaurus": (
        '<main><article><div class="tabs-container"><ul role="tablist"><li role="tab">Debian<li role="tab">Fedora</ul>'
        '<div><div role="tabpanel"><p>apt</p></div><div role="tabpanel" hidden>dnf <b>x</b></div></div></div>',
        "Debian\n\napt\n\nFedora\n\ndnf x",
    ),
    "tabs of Material": (
        '<article><div class="tabbed-set"><input type=radio><div class="tabbed-labels"><label>A</label><label>B</label>'
        '</div><div class="tabbed-content"><div class="tabbed-block"><p>a</p></div><div class="tabbed-block">'
        '<div class="tabbed-set"><div class="tabbed-labels"><label>C</label></div><div class="tabbed-content">'
        '<div class="tabbed-block">c</div></div></div></div></div></div></article>',
        "A\n\na\n\nB\n\nC\n\nc",
    ),
    "tabs of sphinx-tabs": (
        '<div role="tablist"><button role="tab">A</button><button role="tab">B</button></div>'
        '<div role="tabpanel">a</div><div role="tabpanel" hidden="true">b</div>',
        "A\n\na\n\nB\n\nb",
    ),
    "tabs of Starlight": (
        '<starlight-tabs><div class="tablist-wrapper"><ul role="tablist"><li><a role="tab" href="#a">A</a>'
        '<li><a role="tab" href="#b">B</a></ul></div><div id="a" role="tabpanel">a</div>'
        '<div id="b" role="tabpanel" hidden>b</div></starlight-tabs>',
        "A\n\na\n\nB\n\nb",
    ),
    "tabs in an element with more than their labels": (
        "<div><div><p role=tablist><b role=tab>A</b></p>x</div><p role=tabpanel>a</p></div>",
        "A\n\nx\n\na",
    ),
    "tabs without panels": ("<ul role=tablist><li role=tab>A</ul>", "- A"),
    "tabs with too few panels": (
        "<div><p role=tablist><b role=tab>A</b> <b role=tab>B</b></p><p role='x tabpanel'>c</p></div>",
        "A B\n\nc",
    ),
    "what Docusaurus puts around an article": (
        '<main><article><nav>Home</nav><span class="theme-doc-version-badge badge">Version: 1.0</span>'
        '<div class="theme-doc-toc-mobile">On this page</div><h1>A</h1><p>a</p><section>'
        '<article><a class="card theme-doc-card-container"><h2>Other</h2></a></article></section></article>'
        '<div class="table-of-contents"><a href="#a">A</a></div></main>',
        "A\n\na",
    ),
    "several articles": ("<main><aside>x</aside><article><p>a</p><article>b</article></article></main>", "a\n\nb"),
    "one article with another in it": ("<p>x</p><article>a<article>b</article></article>", "a\n\nb"),
    "two articles, one with another in it": (
        "<p>x</p><article>a<article>b</article></article><article>c</article>",
        "x\n\na\n\nb\n\nc",
    ),
    "lists of pages of Sphinx": (
        '<h1>A</h1><p>a</p><div class="toctree-wrapper"><p class="caption">Contents</p><ul><li>B</ul></div>',
        "A\n\na",
    ),
    "images": ('<p>See <img src=a alt="the logo"> <img src=b alt=""></p>', "See the logo"),
    "styles that hide": ('<p style="color:red;display: none">x</p><p style="visibility:hidden">y</p>z', "z"),
    "lines of code": (
        '<pre><span class="token-line"><i>a</i><br></span><span class="token-line">  b<br></span></pre>',
        "a\n  b",
    ),
    "lines of code without breaks": (
        '<pre><code><span class="line">a</span><span class="line">  b</span></code></pre>',
        "a\n  b",
    ),
    "signs of links to headings": (
        '<h2>A<a class="permalink" href="#a">¶</a></h2><h2><span class="permalink"><a href="#b">◆</a></span>B</h2>',
        "A\n\nB",
    ),
    "links to headings in Starlight": (
        '<div><h2 id="a">A</h2><a class="sl-anchor-link" href="#a"><span class="sr-only">Section titled “A”</span></a>'
        "</div>a",
        "A\n\na",
    ),
    "what Starlight and VitePress put before code": (
        '<figure><figcaption><span class="title">a.js</span><span class="sr-only">Terminal window</span></figcaption>'
        '<pre>a</pre></figure><div class="language-js x"><button>Copy</button><span class="lang">js</span><pre>b</pre>'
        '</div><p><span class="lang">c</span> <span class="sr-only">d</span></p>',
        "a.js\n\na\n\nb\n\nc d",
    ),
    "a list of languages": (
        '<div><p>Available Languages: <a href="../en/a.html">en</a> | <a hreflang=de rel=alternate>de</a> |'
        "<a hreflang=fr rel=alternate>fr</a></p></div><ul><li><a hreflang=de rel=alternate>de</a></ul>text",
        "- de\n\ntext",
    ),
    "lists of links that are content": (
        "<ul><li><a href=a>a()</a><li><a href=b>b()</a></ul><p>See also <a hreflang=de href=c>c</a>, <a>d</a></p>"
        f"<p>The <a rel=alternate hreflang=de>German</a> <a>page</a> {WORDS}",
        f"- a()\n- b()\n\nSee also c, d\n\nThe German page {WORDS}",
    ),
    "lists of versions": ('<div class="rst-versions"><a>1.0</a></div><div class=md-version>2</div>text', "text"),
    "numbers of lines": (
        '<table><tr><td class="linenos"><pre>1\n2</pre></td><td><pre>a\nb</pre></td></tr></table>',
        "a\nb",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_the_text_of_a_page_is_what_a_reader_can_see(case: str) -> None:
    html, expected = TEXTS[case]
    (part,) = read_html_text(f"<html><body>{html}", Path("page.html")).parts
    assert part.text == expected


# each block is its text, and one with parts their texts after its header; a heading is its level, text and anchor
BLOCKS: dict[str, list[str | list[str]]] = {
    "<h1 id=a>A</h1>x<ul><li><pre>a\n  b\n\nc\n</pre><li>y<pre>z</pre></ul>d<pre>def f():\n\n  g\n\nh\n</pre>": [
        *("1 A #a", "x", ["", "a\n  b", "c"], "- y", ["", "z"], "d", ["", "def f():\n\n  g", "h"]),
    ],
    "<table><caption>C</caption><tr><th>a<th>b<tr><td>1<td>2<tr><td><td><tr><td>3<td></table>": [
        *("C", ["a | b", "a | b", "1 | 2", "3 | "]),
    ],
    "<ul><li>a<table><tr><td>1<td>2<tr><td>3<td>4</table><table></table></ul>b": [
        *("- a", ["", "1 | 2", "3 | 4"], "b"),
    ],
    "<h2><div><p></p></div></h2><p>text": ["text"],
    "<h2><p>One</p><p>two</p></h2>three": ["2 One #", "two", "three"],
    f"<h2>{'x' * LONGEST_HEADING}<br>y</h2>a": [f"2 {'x' * LONGEST_HEADING} #", "y", "a"],
    f"<h2>{'x' * (LONGEST_HEADING - 2)}<br>y</h2>a": [f"2 {'x' * (LONGEST_HEADING - 2)} y #", "a"],
    "<dl><dt id=f>f<dd>in<dl><dt id=g>g<dd>i<dl><dt id=h>h</dl></dl><dt>plain<dd>y</dl>z": [
        *("7 f #f", "in", "8 g #g", "i", "9 h #h", "9  #", "8  #", "7 plain #", "y", "7  #", "z"),
    ],
    f"{'<dl>' * 9}<dt id=a>a": ["12 a #a", *["12  #"] * 4, "11  #", "10  #", "9  #", "8  #", "7  #"],
    "<p>a<img alt=b>c<a><img alt=Up></a>d<img>e<img alt=''>f<rt>g</rt>h<textarea>i</textarea>j<br>k": [
        *("a b c d e f g h i j\nk",),
    ],
    "<p>a<math><mi>x</mi><mo>=</mo></math>b<script>s</script>c": ["a x = bc"],
    "<dt id=x><button>b</button></dt><h3><button>S</button></h3>q<h3>t<button>S</button></h3><h4><nav>n</nav></h4>s": [
        *("6 b #x", "3 S #", "q", "3 t #", "s"),
    ],
    "<nav>n</nav>a<form>b</form><form><p>c</p></form><div role=navigation>d</div><div role=x>e</div>"
    "<b class=anchor>f</b><a class='anchor x'>g</a><i class='viewcode-link'>i</i><a>j</a>": ["a", "c", "e", "fj"],
    "<header>a</header><aside>b</aside><div role=main><header>c</header><aside>d</aside></div>": ["c", "d"],
    "<header>a</header><section><header>b</header><nav>c</nav></section><header>d</header>": ["b"],
    "<div hidden>a</div><div hidden=until-found>b</div><div hidden role=tabpanel>c</div>"
    "<p style='x:y;DISPLAY:NONE'>d</p><p style='x:display: none'>e</p><p style=''>f": ["b", "c", "e", "f"],
    "<pre><span class='hljs'>a</span><span class='line'>b</span><span class='line'></span></pre>"
    "<pre>c<b>d</b></pre><pre>e<br><br> f</pre>": [
        *(["", "a\nb"], ["", "cd"], ["", "e\n\n f"]),
    ],
    "<div id=d><h2>A</h2></div><section id=s><span id=t></span><h2>B</h2></section>"
    "<section id=u>c<h2>D</h2></section>": [
        *("2 A #d", "2 B #s", "c", "2 D #u"),
    ],
    "<main><header id=a><hgroup><h1>A</h1></hgroup></header>"
    "<section id=b><header><div><h2>B</h2></div></header></section>": [
        *("1 A #a", "2 B #"),
    ],
    "<div id=a><p>x</p><h2>B</h2></div>": ["x", "2 B #"],
    "<section id=a><header><h2>B</h2></header></section><ul id=c><h2>C</h2></ul><h2 id=d><a name=e></a>E</h2>"
    "<h2><a name=f></a>F</h2><h2><a name></a>G</h2>": ["2 B #a", "2 C #c", "2 E #d", "2 F #f", "2 G #"],
}

# anchors directly before headings, and terms of lists in which one has an anchor
BLOCKS |= {
    "<a name=a></a><h2>A</h2><p>x<a name=b></a></p><h2>B</h2><p id=p></p><h2>C</h2><a name=d></a>y<h2>D</h2>"
    "<span id=e></span><a id=f></a><h2>F</h2><a name=h></a><h2 id=g>G</h2><h2>H</h2>": [
        *("2 A #a", "x", "2 B #b", "2 C #", "y", "2 D #", "2 F #f", "2 G #g", "2 H #"),
    ],
    "<div id=menu><form>x</form></div><h2>A</h2><a class=permalink id=b href=#b>¶</a><h2>B</h2>": ["2 A #", "2 B #b"],
    # an id leads to its first element; XHTML read as HTML repeats that of an element without content
    "<h2 id=a>A</h2><h2 id=a>B</h2><section id=a><h2>C</h2></section><h2><a name=a></a><a name=b></a>D</h2>": [
        *("2 A #a", "2 B #", "2 C #", "2 D #b"),
    ],
    "<div><h2><a id='a'/>A</h2></div><p>x</p><div><div><h3><a id='b'/>B</h3></div></div><p>y</p><h3>C</h3>": [
        *("2 A #a", "x", "3 B #b", "y", "3 C #"),
    ],
    "<dl><dt><a name=a></a>A<dd>x<a name=b></a><dt>B<dt>C</dl><dl><a name=d></a><dt>D</dt><dd>y</dl>"
    "<dl><dt>E<sup id=r>1</sup></dl><dl id=l><span id=s></span><dt>F</dl>": [
        *("7 A #a", "x", "7 B #b", "7 C #", "7  #", "7 D #d", "y", "7  #", "E1", "7  #", "F", "7  #"),
    ],
}


@pytest.mark.parametrize("html", BLOCKS)
def test_a_page_has_blocks_and_headings(html: str) -> None:
    (part,) = read_html_text(f"<body>{html}", Path("page.html")).parts
    found: list[str | list[str]] = []
    for each in part.blocks:
        if isinstance(each, Heading):
            assert part.text[each.start : each.end] == each.text
            found.append(f"{each.level} {each.text} #{each.anchor}")
        elif each.parts:
            assert (each.start, each.end) == (each.parts[0].start, each.parts[-1].end)
            found.append([each.header, *(part.text[one.start : one.end] for one in each.parts)])
        else:
            found.append(part.text[each.start : each.end])
    assert found == BLOCKS[html]


# each block is its anchor and its text; an entry has a second sign #
PLACES: dict[str, list[str]] = {
    "<p id=a>x</p><p><a name=b></a>y</p><p>z<a name=c></a></p><p>w</p><p>v<b id=d>u</b></p>": [
        *("#a x", "#b y", "z", "#c w", "vu"),
    ],
    "<a name=a></a><a name=b></a><hr><p>x</p><ul id=u><li>y<li id=l>z</ul><dl><dt>t<dd id=e>d</dl>": [
        *("#a x", "#u - y", "#l - z", "t", "#e d"),
    ],
    "<table><tr id=a><td>x<tr><td><a id=b></a>y<tr><td>z<td id=c>w<tr><td></table>": ["#a x", "#b y", "z | w"],
    "<a name=t></a><table><caption>C</caption><tr><td>x</table><table id=u><tr><td>y</table>": ["#t C", "x", "#u y"],
    "<pre id=a>x</pre><div id=b><div><p>y</p></div><p>z</p></div><div id=c><h2>H</h2>w</div>": [
        "#a x",
        "#b y",
        "z",
        "w",
    ],
    "<section id=a><p>x<h2>H</h2></section><div id=b></div><p>y": ["x", "y"],
    "<p id=fst_err_a>FST_ERR_A is raised</p><p id=enable_fts5><b>SQLITE_ENABLE_FTS5</b></p><p id=busy>not it</p>": [
        *("##fst_err_a FST_ERR_A is raised", "##enable_fts5 SQLITE_ENABLE_FTS5", "#busy not it"),
    ],
    f"<p id=x1>x1</p><p id=1>1</p><p id=x>x</p><p id=ab>{'c ' * 49}ab</p><p id=AB>{'c ' * 50}ab</p>": [
        *("##x1 x1", "#1 1", "#x x", f"##ab {'c ' * 49}ab", f"#AB {'c ' * 50}ab"),
    ],
    "<p id=''>x</p><p id=a hidden>y</p><p>z": ["x", "z"],
}


@pytest.mark.parametrize("html", PLACES)
def test_blocks_have_the_anchors_at_their_beginning(html: str) -> None:
    (part,) = read_html_text(f"<body>{html}", Path("page.html")).parts
    blocks = [each for block in part.blocks if isinstance(block, Block) for each in block.parts or (block,)]
    found = [
        f"{'#' * (bool(each.anchor) + each.is_entry)}{each.anchor} {part.text[each.start : each.end]}".lstrip()
        for each in blocks
    ]
    assert found == PLACES[html]


def test_text_without_anchors_has_none() -> None:
    (part,) = read_html_text("<a name=a></a><h2>A</h2><p id=b>b</p>", Path("p.docx"), has_anchors=False).parts
    assert [each.anchor for each in part.blocks] == ["", ""]


LISTS = {
    "tags of Docusaurus": '<html class="blog-wrapper blog-tags-post-list-page plugin-blog"><main><h1>2 posts</h1>x',
    "an archive of Docusaurus": '<html class="plugin-blog plugin-id-default"><main><h3 id=2021>2021</h3><ul><li>x</ul>',
    "a category of Docusaurus": '<main><div class="generatedIndexPage_x"><h1>C</h1><p>x</div>',
    "a blog of Material": '<article><h1>Blog</h1></article><article class="md-post md-post--excerpt">x</article>',
    "the index of Sphinx": '<h1 id="index">Index</h1><div class="genindex-jumpbox">A</div>',
    "contents of Sphinx": '<h1>Docs</h1><div class="toctree-wrapper"><ul><li>A</ul></div>',
}
PAGES = {
    "a post": '<html class="blog-wrapper blog-post-page plugin-blog"><main><article><h1>A</h1>x</article>',
    "contents with a text": '<h1>Docs</h1><p>x</p><div class="toctree-wrapper"><ul><li>A</ul></div>',
}


@pytest.mark.parametrize("case", [*LISTS, *PAGES])
def test_a_list_of_pages_is_known_by_its_elements(case: str) -> None:
    document = read_html_text((LISTS | PAGES)[case], Path("page.html"))
    assert document.unlisted == ("links to other pages alone" if case in LISTS else "")


@pytest.mark.parametrize(
    ("path", "canonical", "copied"),
    [
        ("a/index.html", "https://x.org/base/a/", ""),
        ("1.0/a.html", "https://x.org/base/next/a", "next/a.html"),
        ("1.0/b.html", "https://x.org/base/next/b", ""),  # no such page
        ("a.html", "https://x.org/next/a", "next/a.html"),
        ("index.html", "https://x.org/next/a", ""),
        ("1.0/a.html", "", ""),
        ("1.0/a.html", "https://x.org/next/cafe%CC%81", "next/caf\u00e9.html"),  # a name in NFD
    ],
)
def test_a_page_that_names_another_one_as_canonical_is_a_copy(path: str, canonical: str, copied: str) -> None:
    names = {"a/index.html", "a.html", "next/a.html", "next/caf\u00e9.html", "1.0/a.html", path}
    assert copied_page(path, canonical, names) == copied


@pytest.mark.parametrize("content", ["{", '{"version": "1.2"}', "[1]", '[{"title": "1.2"}]'])
def test_a_list_of_versions_that_another_program_wrote_is_ignored(content: str, tmp_path: Path) -> None:
    (tmp_path / "versions.json").write_text(content)
    assert "version" not in path_columns(tmp_path, "1.2/a.html", {})


def test_pages_in_languages_and_versions_have_them_as_columns(tmp_path: Path, bundle_copy: Path) -> None:
    site = tmp_path / "site"
    version = "<meta name='docsearch:version' content=1.0>"
    pages = {
        "index.html": f"<html lang=en>{version}<h1>A</h1>{WORDS}",
        "de/index.html": f"<html xml:lang=de>{version}<h1>A</h1>Die Häuser {WORDS}",
        "copy.html": f"<html lang=en><link rel=canonical href='https://x.org/de/'>{WORDS}",
        "notes.md": f"---\nlang: fr\nversion: 2\n---\n{WORDS}",
        "1.2/a.html": f"<h1>A</h1>{WORDS}",  # in a folder of mike
        "en/stable/b.html": f"<h1>A</h1>{WORDS}",  # in folders of Read the Docs
        "versions.json": '[{"version": "1.2", "title": "1.2", "aliases": ["latest"]}]',
    }
    for name, content in pages.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(content)
    done = run("index", site, "--out", bundle_copy, "--replace")
    assert summary(done, "languages") == "de, en, fr"
    assert summary(done, "versions") == "1.0, 1.2, 2, stable"
    assert "1 skipped: a copy of the page that it names as canonical, such as copy.html" in " ".join(done.out.split())
    found = [each.metadata for each in open_passages(bundle_copy)]
    assert {each["path"]: (each.get("language"), each.get("version")) for each in found} == {
        "index.html": ("en", "1.0"),
        "de/index.html": ("de", "1.0"),
        "notes.md": ("fr", "2"),
        "1.2/a.html": (None, "1.2"),
        "en/stable/b.html": ("en", "stable"),
    }
    info = read_manifest(bundle_copy).corpus
    assert info.keywords is not None
    assert set(info.keywords.languages) == {"english", "french", "german"}
    assert "language_column" not in info.options
    run("index", site, "--out", bundle_copy, "--language-column", "none")
    assert not read_manifest(bundle_copy).corpus.keywords.languages  # type: ignore[union-attr]


def test_a_site_of_which_a_page_states_no_known_language_has_the_stems_of_the_option(
    tmp_path: Path, bundle_copy: Path
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.md").write_text(f"---\nlang: de\n---\n{WORDS}")
    (site / "b.md").write_text(f"---\nlang: pseudo code\n---\n{WORDS}")
    done = run("index", site, "--out", bundle_copy, "--replace")
    assert done.code == 0, done.err
    assert not read_manifest(bundle_copy).corpus.keywords.languages  # type: ignore[union-attr]
