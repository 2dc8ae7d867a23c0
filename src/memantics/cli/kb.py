"""``memantics kb``: import, query, validate, show and export knowledge graphs of memes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.tree import Tree

from memantics import understanding
from memantics.cli.expose import AsJson, PageLanguageFlag, spread
from memantics.cli.terminal import console, plain, print_data, print_json, read_input, show_table
from memantics.core.parameters import Argument, Flag
from memantics.understanding import retrieve, tabulate_near

app = typer.Typer(
    help="Manage knowledge graphs of memes: import, query, validate, show, export.",
    no_args_is_help=True,
)

Store = Annotated[Path, Flag("Folder of the knowledge store.", "--store", metavar="DIR")]
Timeout = Annotated[float, Flag("Time limit in seconds.", min=0.1)]
Memes = Annotated[list[str] | None, Argument("Meme ids. Default: all.")]
STORE = Path("knowledge")


@app.command("import")
@spread
def import_knowledge(
    sources: Annotated[
        list[str],
        Argument(
            "sample, a folder or file of M-QUEST knowledge bases, or files that "
            "'kb export' writes (.nq, .trig, .ttl, .jsonld)."
        ),
    ],
    store: Store = STORE,
    as_json: AsJson = False,
) -> None:
    """Import knowledge into the store; knowledge about the same memes is replaced."""
    opened = understanding.KnowledgeStore.create(store)
    total = {source: opened.import_path(source) for source in sources}
    if as_json:
        print_json({source: asdict(account) for source, account in total.items()})
        return
    for source, account in total.items():
        show_table(understanding.tabulate_account(source, account))
        if account.dangling:
            hint = "'memantics kb stats --dangling' lists references to missing individuals."
            console().print(plain(hint, "dim"))


@app.command("query")
@spread
def query_knowledge(
    query: Annotated[str, Argument("A SPARQL query; - reads it from standard input.")],
    store: Store = STORE,
    limit: Annotated[int, Flag("Maximum number of rows.", min=1, max=1_000_000)] = 100,
    timeout: Timeout = 30.0,
    as_json: AsJson = False,
) -> None:
    """Query the store with SPARQL; the prefixes mm, said, meme, prov, rdf, rdfs are predefined."""
    text = read_input() if query == "-" else query
    found = understanding.KnowledgeStore.open(store).query(text, limit=limit, timeout=timeout)
    if as_json:
        print_json({"variables": found.variables, "rows": list(found), "cut": found.cut})
        return
    show_table(understanding.tabulate_rows(found))
    note = f"{len(found.rows):,} rows" + (", and more: raise --limit" if found.cut else "")
    console().print(plain(note, "dim"))


@app.command("stats")
@spread
def show_stats(
    store: Store = STORE,
    dangling: Annotated[
        bool, Flag("List every reference to a missing individual.", "--dangling")
    ] = False,
    timeout: Timeout = understanding.PATIENCE,
    as_json: AsJson = False,
) -> None:
    """Count the memes, individuals and statements of the store."""
    opened = understanding.KnowledgeStore.open(store)
    if dangling:
        _show_dangling(opened.dangling(timeout), as_json)
        return
    found = opened.statistics(timeout)
    if as_json:
        print_json(found)
        return
    console().print(
        plain(
            f"{found.memes:,} memes, {found.individuals:,} individuals, "
            f"{found.statements:,} statements, {found.confirmed:,} confirmed by people"
        )
    )
    for shown in understanding.tabulate_store(found):
        show_table(shown)


def _show_dangling(found: Sequence[understanding.Dangling], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    show_table(understanding.tabulate_dangling(found))
    console().print(plain(f"{len(found):,} references point to missing individuals", "dim"))


@app.command("validate")
@spread
def validate_knowledge(
    store: Store = STORE,
    shapes: Annotated[
        Path | None, Flag("SHACL file to use instead of the ontology's shapes.")
    ] = None,
    every: Annotated[bool, Flag("List every violation instead of one per kind.", "--all")] = False,
    timeout: Timeout = understanding.PATIENCE,
    as_json: AsJson = False,
) -> None:
    """Validate every graph with the ontology's SHACL shapes; exit code 1 on a violation."""
    opened = understanding.KnowledgeStore.open(store)
    found = opened.validate(shapes, timeout)
    violations = [breach for breach in found if breach.severity == "Violation"]
    if as_json:
        print_json({"memes": len(opened.ids()), "breaches": [asdict(breach) for breach in found]})
    else:
        if found:
            show_table(understanding.tabulate_breaches(found, every=every))
        where = f" in {len({breach.meme for breach in violations}):,} graphs" if violations else ""
        line = f"{len(opened.ids()):,} graphs checked: {len(violations):,} violations{where}"
        console().print(plain(line, "bold"))
    if violations:
        raise typer.Exit(1)


@app.command("show")
@spread
def show_meme(
    meme: Annotated[str, Argument("Meme id.")],
    store: Store = STORE,
    images: Annotated[
        Path | None, Flag("Folder with the images of the memes.", metavar="DIR")
    ] = None,
    out: Annotated[Path | None, Flag("HTML file to write. Default: MEME.html.")] = None,
    page: Annotated[bool, Flag("Also write an HTML page with the graph.")] = True,
    language: PageLanguageFlag = "en",
    as_json: Annotated[bool, Flag("Print JSON-LD instead of a tree.", "--json")] = False,
) -> None:
    """Show the knowledge about a meme as a tree, and as a page with its graph."""
    opened = understanding.KnowledgeStore.open(store)
    if as_json:
        print_data(opened.serialize([meme], "jsonld").decode())
        return
    known = opened.get(meme)
    console().print(draw_tree(known))
    if page:
        name = re.sub(r"[^\w.-]", "_", meme).lstrip(".") or "meme"
        target = known.save(out or Path(f"{name}.html"), images=images, language=language)
        console().print(plain(f"wrote {target}", "dim"))


def draw_tree(known: understanding.Knowledge) -> Tree:
    """Return the knowledge about a meme as a terminal tree: dimensions, individuals, relations."""
    tree = Tree(plain(f"meme {known.meme}", "bold"), guide_style="dim")
    for title, members in understanding.outline(known):
        branch = tree.add(plain(title, "bold cyan"))
        for individual, links in members:
            kind = f" ({individual.kind})" if individual.kind else ""
            leaf = branch.add(plain(individual.label + kind, "bold"))
            if individual.description:
                leaf.add(plain(individual.description, "dim"))
            for link in links:
                leaf.add(plain(link))
    return tree


@app.command("export")
@spread
def export_knowledge(
    memes: Memes = None,
    store: Store = STORE,
    out: Annotated[Path | None, Flag("File to write. Default: standard output.")] = None,
    form: Annotated[
        understanding.GraphFormat | None,
        Flag("Output format. Default: by the file name, else nquads.", "--format"),
    ] = None,
) -> None:
    """Export knowledge as N-Quads, TriG, Turtle or JSON-LD; 'kb import' reads all of them."""
    opened = understanding.KnowledgeStore.open(store)
    if out is None:
        print_data(opened.serialize(memes, form or "nquads").decode())
        return
    opened.export(out, memes, form)
    chosen = dict.fromkeys(memes or opened.ids())
    count = sum(1 for meme in chosen for _ in opened.quads(meme))
    console().print(plain(f"{len(chosen):,} memes, {count:,} statements: {out}"))


@app.command("near")
@spread
def find_near(
    text: Annotated[str, Argument("Text of a meme.")] = "",
    image: Annotated[
        Path | None, Flag("Image of a meme, to find memes with the same image.")
    ] = None,
    known: Annotated[
        list[Path] | None,
        Flag("Further stores, builds or collections to search; repeatable. Default: only --store."),
    ] = None,
    store: Store = STORE,
    count: Annotated[int, Flag("Number of memes to show.", min=1)] = 5,
    as_json: AsJson = False,
) -> None:
    """Find the most similar known memes by text or image, with the statements about them."""
    found = retrieve(text, image=image, known=known or [store], count=count)
    if as_json:
        print_json(found)
        return
    show_table(tabulate_near(found))
