"""A release has one version, whoever says it."""

import re

from assay import __version__, paths


def test_sources_recipe_and_changelog_are_of_this_version():
    said = {
        'sources/CMakeLists.txt': r'^project\(assay VERSION (\S+)',
        'sources/spack_repo/assay/packages/assay/package.py': r"^    version\('([^']+)'\)",
        'CHANGELOG.md': r'^## ([\d.]+)',
        'CITATION.cff': r'^version: "?([\d.]+)',
    }
    for name, expression in said.items():
        text = (paths.ROOT / name).read_text()
        first = re.search(expression, text, re.MULTILINE)
        assert first and first[1] == __version__, name
