from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, get
from conan.tools.layout import basic_layout
from conan.tools.scm import Version
import os

required_conan_version = ">=2.4"


class PdpConan(ConanFile):
    name = "pdp"
    description = "Trains neural networks on many threads, processes and machines"
    license = "BSD-3-Clause"
    url = "https://github.com/conan-io/conan-center-index"
    homepage = "@HOMEPAGE@"
    topics = ("neural-networks", "machine-learning", "distributed-training", "data-parallel", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    # The components for Gloo, oneDNN, CUDA, NCCL and CSV files are left out, as Conan Center has no recipes for their libraries.
    options = {
        "tcp": [True, False],
        "shm": [True, False],
        "mpi": [True, False],
        "separate_compilation": [True, False],
    }
    default_options = {
        "tcp": True,
        "shm": True,
        "mpi": False,
        "separate_compilation": True,
    }
    no_copy_source = True

    @property
    def _minimum_compiler_version(self):
        return {"gcc": "12", "clang": "16"}

    @property
    def _has_processes(self):
        return bool(self.options.tcp or self.options.shm)

    def layout(self):
        basic_layout(self, src_folder="src")

    def requirements(self):
        self.requires("eigen/3.4.0")
        self.requires("fmt/10.2.1")
        self.requires("zlib/[>=1.2.11 <2]")
        self.requires("nlohmann_json/3.11.3")
        self.requires("xxhash/0.8.2")
        if self._has_processes:
            self.requires("openssl/[>=1.1 <4]")
        if self.options.tcp:
            self.requires("asio/1.30.2")
        if self.options.mpi:
            self.requires("openmpi/4.1.6")

    def package_id(self):
        self.info.clear()

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"{self.ref} can only be used on Linux, as it uses futexes, memfd and process_vm_readv.")
        if self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration(f"{self.ref} needs a 64-bit processor: x86_64 or armv8.")
        check_min_cppstd(self, 20)
        minimum = self._minimum_compiler_version.get(str(self.settings.compiler))
        if minimum and Version(self.settings.compiler.version) < minimum:
            raise ConanInvalidConfiguration(f"{self.ref} needs {self.settings.compiler} {minimum} or newer.")

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def build(self):
        pass

    def package(self):
        modules = os.path.join(self.package_folder, "lib", "cmake", "pdp")
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))
        # The sources that a project compiles once, with the option separate_compilation, and the build module that does so.
        copy(self, "*", os.path.join(self.source_folder, "src"), os.path.join(self.package_folder, "share", "pdp", "src"))
        copy(self, "PdpComponents.cmake", os.path.join(self.source_folder, "cmake"), modules)
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
