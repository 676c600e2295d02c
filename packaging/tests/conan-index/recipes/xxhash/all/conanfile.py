"""The system's libxxhash-dev: its headers are copied, so that a test notices if they are found elsewhere."""

from conan import ConanFile
from conan.tools.files import copy
from conan.tools.system.package_manager import Apt


class XxHashConan(ConanFile):
    name = "xxhash"
    package_type = "header-library"
    settings = "os", "arch"

    def package_id(self):
        self.info.clear()

    def system_requirements(self):
        Apt(self).install(["libxxhash-dev"], check=True)

    def package(self):
        for pattern in ["xxhash.h", "xxh3.h"]:
            copy(self, pattern, "/usr/include", f"{self.package_folder}/include")

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("pkg_config_name", "libxxhash")
        self.cpp_info.set_property("cmake_file_name", "xxHash")
        self.cpp_info.set_property("cmake_target_name", "xxHash::xxhash")
