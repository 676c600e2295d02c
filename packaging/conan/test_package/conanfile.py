"""Trains a small model on two ranks with the package, over each of its communicators. Fails if a training fails or a loss does not fall."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class PdpTestConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        program = os.path.join(self.cpp.build.bindir, "train")
        with open(os.path.join(self.build_folder, "communicators.txt"), encoding="utf-8") as names:
            communicators = names.read().split()
        for name in communicators:
            if name == "thread":
                self.run(f"{program} --threads 2", env="conanrun")
            elif name == "mpi":
                self.run(f"{program} --comm mpi", env="conanrun")  # one rank, as there may be no launcher
            else:
                self.run(f"{program} --ranks 2 --comm {name}", env="conanrun")
