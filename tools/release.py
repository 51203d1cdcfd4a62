"""Makes a release: the changelog from `changes/`, the version, a commit and a tag. Nothing is sent anywhere.

    python tools/release.py 0.1.0 --dry-run    # show it, change nothing
    python tools/release.py 0.1.0

All is done in a clone beside the repository, which takes it over at the end or not at all.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONED = {
    "src/linnet/__init__.py": r'(?m)^(__version__ = )"(.+)"$',
    "CITATION.cff": r"(?m)^(version: )(.+)$",
}
"""Where the version stands, and how."""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command wrote; its failure ends the release with all that it said."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def order(version: str) -> tuple[int, ...]:
    """Versions in the order of their release: a development version comes before what it becomes."""
    numbers, _, development = version.partition(".dev")
    return (*map(int, numbers.split(".")), 0 if development else 1)


def release(version: str, where: Path) -> None:
    """Write version and changelog in a clone, commit and tag them."""
    for name, pattern in VERSIONED.items():
        path = where / name
        text, count = re.subn(
            pattern, lambda m: f'{m[1]}"{version}"' if '"' in m[0] else m[1] + version, path.read_text()
        )
        if count != 1:
            sys.exit(f"error: the version stands {count} times in {name}; expected once")
        path.write_text(text)
    run(sys.executable, "-m", "towncrier", "build", "--yes", "--version", version, cwd=where)
    run("git", "add", "--all", cwd=where)
    run("git", "commit", "--quiet", "--message", f"Release {version}", cwd=where)
    run("git", "tag", "--annotate", f"v{version}", "--message", f"Linnet {version}", cwd=where)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Make a release: changelog, version, commit and tag.")
    parser.add_argument("version", help="three numbers, such as 0.1.0")
    parser.add_argument("--dry-run", action="store_true", help="show it, change nothing")
    parser.add_argument("--repository", type=Path, default=ROOT, help=argparse.SUPPRESS)
    said = parser.parse_args(arguments)
    version, root = said.version, said.repository
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        sys.exit(f"error: version {version!r}; give three numbers, such as 0.1.0")
    match = re.search(VERSIONED["src/linnet/__init__.py"], (root / "src/linnet/__init__.py").read_text())
    assert match is not None
    if order(version) <= order(match[2]):
        sys.exit(f"error: version {version} does not come after {match[2]}; give a later one")
    if f"v{version}" in run("git", "tag", "--list", cwd=root).split():
        sys.exit(f"error: the tag v{version} is there already; give a later version")
    if run("git", "status", "--porcelain", cwd=root):
        sys.exit(
            "error: there are changes that are not committed; commit them, or put them aside (git stash)"
        )
    if not [*(root / "changes").glob("*.*.md")]:
        sys.exit("error: there is no fragment in changes/; a release without changes is none")
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "clone")
        run("git", "clone", "--quiet", root, clone)
        for key in ("user.name", "user.email"):
            run("git", "config", key, run("git", "config", "--default", "", key, cwd=root).strip(), cwd=clone)
        release(version, clone)
        if said.dry_run:
            print(run("git", "show", "--stat", "--format=%s (tag v" + version + ")", "HEAD", cwd=clone))
            print((clone / "CHANGELOG.md").read_text())
            return
        run("git", "pull", "--quiet", "--ff-only", "--tags", clone, "HEAD", cwd=root)
    print(f"v{version} is tagged. `make dist` builds it; `git push --follow-tags` and an upload are yours.")


if __name__ == "__main__":
    main()
