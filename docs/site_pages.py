"""Pages of the site that live outside docs/: the readme, the changelog and how to contribute.

MkDocs calls these two hooks. The files keep their links for readers of the repository; here each
link is rewritten to where its target stands in the site.
"""

import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = {
    "README.md": "readme.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
_LINK: Final = re.compile(r"\]\((?!\w+:)([^)#\s]*)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that stand in the root of the repository."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_LINK.sub(_in_site, text)))
    return files


def _in_site(link: re.Match[str]) -> str:
    """A link from the root of the repository as one from the root of the site."""
    target = PAGES.get(link[1], link[1].removeprefix("docs/"))
    return f"]({target}"
