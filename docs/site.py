"""How the site is made of this repository: pages from its root, formulas, and methods of specs.

README, changelog and the guide for contributors are pages of the site as they stand, with links
that lead to pages. Formulas become MathML when the site is built, so that no script is loaded.
"""

from __future__ import annotations

import ast
import html
import re
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what stands at the root of the repository."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(
            File.generated(config, page, content=re.sub(r"\]\((?!https?:|#)", "](../", text))
        )
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to files of the repository lead to pages, or be plain text where there are none.

    On the page of examples, the scripts themselves stand where the links to them are.
    """
    if page.file.src_uri == "examples.md":
        markdown = re.sub(r"^\[.*\]\(\.\./(examples/.*)\)$", _script, markdown, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]+)\]\(\.\./([^)#]*)(#[^)]*)?\)", _link, markdown)


def _script(found: re.Match[str]) -> str:
    text = (ROOT / found[1]).read_text(encoding="utf-8")
    return f"```python title={found[1]!r}\n{text}```"


def _link(found: re.Match[str]) -> str:
    text, path, anchor = found[1], found[2].rstrip("/"), found[3] or ""
    if path in PAGES:
        return f"[{text}]({PAGES[path]}{anchor})"
    if path.startswith("docs/") and path.endswith(".md"):
        return f"[{text}]({path.removeprefix('docs/')}{anchor})"
    if path == "examples":
        return f"[{text}](examples.md)"
    if path.startswith("examples/"):
        name = Path(path).stem.replace("_", "-")
        return f"[{text}](examples.md#{name})"
    return text


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write formulas as MathML, which browsers show by themselves."""
    shown = re.sub(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', _block, content, flags=re.DOTALL)
    return re.sub(r'<span class="arithmatex">\\\((.*?)\\\)</span>', _inline, shown, flags=re.DOTALL)


def _block(found: re.Match[str]) -> str:
    return convert(html.unescape(found[1]), display="block")


def _inline(found: re.Match[str]) -> str:
    return convert(html.unescape(found[1]))


class FilledIn(griffe.Extension):
    """Methods that take the parameters of a spec have them in their signature and description.

    The package does this when it is imported (``accessor._builds``); here it is read, not imported.
    """

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Fill in the methods of the accessor, once all modules are read."""
        _in_markdown(pkg)
        specs = _specs(pkg)
        for method in pkg["accessor.SdcAccessor"].functions.values():
            for decorator in method.decorators:
                built = re.fullmatch(r"_builds\((\w+)\)", str(decorator.value))
                if built:
                    _fill(method, specs[built[1]])


def _in_markdown(thing: griffe.Object) -> None:
    """Write what docstrings have of reStructuredText as Markdown: roles and tables."""
    if thing.docstring is not None:
        text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", thing.docstring.value)
        table = r"(?m)^( *)(=+ =[= ]*\n(?:.*\n)*? *=+ =[= ]*\n(?:.*\n)*? *=+ =[= ]*)$"
        thing.docstring.value = re.sub(table, r"\1```text\n\1\2\n\1```", text)
    for member in thing.members.values():
        if not member.is_alias:
            _in_markdown(member)


def _specs(package: griffe.Module) -> dict[str, griffe.Class]:
    """Return the classes of maskings by name."""
    masking = package["masking"]
    return {
        name: each for module in masking.modules.values() for name, each in module.classes.items()
    }


def _fill(method: griffe.Function, spec: griffe.Class) -> None:
    described = spec.docstring.value if spec.docstring else ""
    section = described.partition("Parameters\n----------\n")[2].partition("\n\nExamples\n")[0]
    if method.docstring is not None:
        method.docstring.value = method.docstring.value.replace("{parameters}", section)
    first, _, *own = method.parameters
    taken = []
    keyword_only = False
    for name, field in spec.attributes.items():
        if name == "_":  # dataclasses.KW_ONLY
            keyword_only = True
        elif field.value is not None and "instance-attribute" in field.labels:
            kind = "keyword-only" if keyword_only else "positional or keyword"
            taken.append(
                griffe.Parameter(
                    name,
                    annotation=field.annotation,
                    kind=griffe.ParameterKind(kind),
                    default=_default(str(field.value)),
                )
            )
    method.parameters = griffe.Parameters(first, *taken, *own)


def _default(text: str) -> str | None:
    """Return the default of a field of a spec, or None if it must be given."""
    call = ast.parse(text, mode="eval").body
    if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "option":
        return ast.unparse(call.args[0])
    return None
