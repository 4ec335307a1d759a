"""What setuptools does differently for this package; see pyproject.toml."""

from pathlib import Path

from setuptools.command.build_py import build_py

__all__ = ["FreshBuildPy"]


class FreshBuildPy(build_py):
    """Build from the sources alone.

    setuptools packs all that lies in ``build/lib*``: a module that was removed
    or became a package since the last ``pip install .`` would be installed again.
    """

    def run(self) -> None:
        """Remove what an earlier build left, then copy the modules."""
        if not self.editable_mode:
            # Folders stay: setuptools remembers which it has made.
            for path in Path(self.build_lib).rglob("*"):
                if not path.is_dir():
                    path.unlink()
        super().run()
