"""The Conan 2 recipe of pdp. Create the package with `conan create . --build=missing`; docs/packages.md describes the options."""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout
from conan.tools.scm import Version
from conan.tools.system.package_manager import Apt

required_conan_version = ">=2.4"


class PdpConan(ConanFile):
    name = "pdp"
    description = "Trains neural networks on many threads, processes, machines and GPUs"
    license = "BSD-3-Clause"
    topics = ("neural-networks", "machine-learning", "distributed-training", "data-parallel", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "tcp": [True, False],
        "shm": [True, False],
        "gloo": [True, False],
        "mpi": [True, False],
        "onednn": [True, False],
        "csv": [True, False],
        "npz": [True, False],
        "cuda": [True, False],
        "nccl": [True, False],
        "separate_compilation": [True, False],
    }
    default_options = {
        "tcp": True,
        "shm": True,
        "gloo": False,
        "mpi": False,
        "onednn": False,
        "csv": False,
        "npz": False,
        "cuda": False,
        "nccl": False,
        "separate_compilation": True,
    }
    exports = "include/pdp/core/version.hpp"
    exports_sources = "include/*", "src/*", "cmake/PdpComponents.cmake", "cmake/Find*.cmake", "packaging/conan/*.cmake", "LICENSE"
    no_copy_source = True
    # `conan create` and `conan test` build this project against the package.
    test_package_folder = os.path.join("packaging", "conan", "test_package")

    @property
    def _minimum_compiler_version(self):
        return {"gcc": "12", "clang": "16"}

    @property
    def _has_processes(self):
        """Whether ranks may be processes that find each other through pdp's own store, which needs OpenSSL."""
        return bool(self.options.tcp or self.options.shm or self.options.gloo or self.options.nccl)

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include", "pdp", "core", "version.hpp"))
        self.version = re.search(r'version\[\] = "(.*)"', header).group(1)

    def layout(self):
        basic_layout(self, src_folder=".")
        # In editable mode these folders are used in place of those of the package.
        self.cpp.source.includedirs = ["include"]

    def requirements(self):
        self.requires("eigen/[>=3.4]")
        self.requires("fmt/[>=9]")
        self.requires("zlib/[>=1.2.11 <2]")
        self.requires("nlohmann_json/[>=3.10 <4]")
        self.requires("xxhash/[>=0.8 <0.9]")
        if self._has_processes:
            self.requires("openssl/[>=1.1.1 <4]")
        if self.options.tcp:
            self.requires("asio/[>=1.22 <2]")
        if self.options.mpi:
            self.requires("openmpi/[>=4 <6]")

    def system_requirements(self):
        # Conan Center has no recipes for most of these, so they come from the system. apt-get is asked on Debian and Ubuntu only.
        if self.options.gloo:
            self.output.info("The option gloo uses the system's Gloo, as Conan Center has none.")
            Apt(self).install(["libgloo-dev"], check=True)
        if self.options.onednn:
            self.output.info("The option onednn uses the system's oneDNN, as Conan Center has none.")
            Apt(self).install(["libdnnl-dev"], check=True)
        if self.options.csv:
            self.output.info("The option csv uses the system's libcsv, as Conan Center has none.")
            Apt(self).install(["libcsv-dev"], check=True)
        if self.options.npz:
            self.output.info("The option npz uses the system's libzip.")
            Apt(self).install(["libzip-dev"], check=True)
        if self.options.cuda:
            self.output.info("The option cuda uses the system's CUDA toolkit (12 or newer, with nvcc), as Conan Center has none.")
        if self.options.nccl:
            self.output.info("The option nccl uses the system's NCCL (2.27 or newer), as Conan Center has none.")

    def package_id(self):
        # The package has all headers and sources, whatever the options. They choose the components that package_info declares.
        self.info.clear()

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"{self.ref} runs on Linux only; this profile is for {self.settings.os}.")
        if self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration(f"{self.ref} needs a 64-bit processor, x86_64 or armv8; this profile is for {self.settings.arch}.")
        if not self.settings.get_safe("compiler.cppstd"):
            raise ConanInvalidConfiguration(f"{self.ref} needs C++20: set compiler.cppstd=20 in the profile, or say -s compiler.cppstd=20.")
        check_min_cppstd(self, 20)
        compiler = str(self.settings.compiler)
        minimum = self._minimum_compiler_version.get(compiler)
        if minimum and Version(self.settings.compiler.version) < minimum:
            raise ConanInvalidConfiguration(
                f"{self.ref} needs {compiler} {minimum} or newer; this profile has {compiler} {self.settings.compiler.version}.")
        if self.options.nccl and not self.options.cuda:
            raise ConanInvalidConfiguration(f"The option nccl of {self.ref} needs the option cuda: NCCL sends values that are in GPU memory.")
        if self.options.cuda and not self.options.separate_compilation:
            raise ConanInvalidConfiguration(
                f"The option cuda of {self.ref} needs the option separate_compilation: only nvcc can compile the kernels.")

    def build(self):
        pass

    def package(self):
        modules = os.path.join(self.package_folder, "lib", "cmake", "pdp")
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))
        copy(self, "*", os.path.join(self.source_folder, "src"), os.path.join(self.package_folder, "share", "pdp", "src"))
        copy(self, "PdpComponents.cmake", os.path.join(self.source_folder, "cmake"), modules)
        copy(self, "Find*.cmake", os.path.join(self.source_folder, "cmake"), modules)
        copy(self, "pdp-compile.cmake", os.path.join(self.source_folder, "packaging", "conan"), modules)

    def _component(self, name, requires, system_libs=()):
        component = self.cpp_info.components[name]
        component.set_property("cmake_target_name", f"pdp::{name}")
        component.set_property("pkg_config_name", "pdp" if name == "pdp" else f"pdp-{name}")
        component.bindirs = []
        component.libdirs = []
        component.resdirs = ["share"]
        component.requires = requires
        component.system_libs = list(system_libs)

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "pdp")
        # pdp::pdp is a component, so the target of the whole package needs another name.
        self.cpp_info.set_property("cmake_target_name", "pdp::all")
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        if self.options.separate_compilation:
            # Compiles the sources in share/pdp/src once in each project, and adds them and the macros that they need to the targets.
            self.cpp_info.set_property("cmake_build_modules", [os.path.join("lib", "cmake", "pdp", "pdp-compile.cmake")])

        self._component(
            "pdp", ["eigen::eigen", "fmt::fmt", "zlib::zlib", "nlohmann_json::nlohmann_json", "xxhash::xxhash"], ["pthread", "dl", "m"])
        self._component("safetensors", ["pdp"])
        if self._has_processes:
            self._component("launch", ["pdp", "openssl::crypto"])
        if self.options.shm:
            self._component("shm", ["launch"])
        if self.options.tcp:
            self._component("tcp", ["launch", "asio::asio"])
        if self.options.shm and self.options.tcp:
            self._component("hierarchical", ["shm", "tcp"])
        if self.options.mpi:
            self._component("mpi", ["pdp", "openmpi::openmpi"])
        if self.options.gloo:
            self._component("gloo", ["launch"], ["gloo"])
        if self.options.onednn:
            self._component("onednn", ["pdp"], ["dnnl"])
        if self.options.csv:
            self._component("csv", ["pdp"], ["csv"])
        if self.options.npz:
            self._component("npz", ["pdp"], ["zip"])
        # The libraries of these two are not on the linker's default path; pdp-compile.cmake finds them.
        if self.options.cuda:
            self._component("cuda", ["pdp"])
        if self.options.nccl:
            self._component("nccl", ["launch"])
