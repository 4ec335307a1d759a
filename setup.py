"""What the project file cannot say, because it depends on the Python that builds."""

import sysconfig

from setuptools import setup

# One wheel serves every version; free-threaded builds have no limited API, and build their own.
is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
setup(options={} if is_free_threaded else {"bdist_wheel": {"py_limited_api": "cp311"}})
