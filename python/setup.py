"""Gives the wheel its version and its platform: it carries one compiled library, but nothing that depends on a Python version."""

import os

from setuptools import setup
from wheel.bdist_wheel import bdist_wheel


class PlatformWheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", os.environ["TEC_WHEEL_PLATFORM"]


setup(version=os.environ["TEC_WHEEL_VERSION"], cmdclass={"bdist_wheel": PlatformWheel})
