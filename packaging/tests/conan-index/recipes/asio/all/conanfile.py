"""The system's libasio-dev: its headers are copied, so that a test notices if they are found elsewhere."""

from conan import ConanFile
from conan.tools.files import copy
from conan.tools.system.package_manager import Apt


class AsioConan(ConanFile):
    name = "asio"
    package_type = "header-library"
    settings = "os", "arch"

    def package_id(self):
        self.info.clear()

    def system_requirements(self):
        Apt(self).install(["libasio-dev"], check=True)

    def package(self):
        for pattern in ["asio/*", "asio.hpp"]:
            copy(self, pattern, "/usr/include", f"{self.package_folder}/include")

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.defines = ["ASIO_STANDALONE"]
        self.cpp_info.system_libs = ["pthread"]
        self.cpp_info.set_property("cmake_file_name", "asio")
        self.cpp_info.set_property("cmake_target_name", "asio::asio")
