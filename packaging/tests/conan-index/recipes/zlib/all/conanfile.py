"""The system's zlib1g-dev."""

from conan import ConanFile
from conan.tools.system.package_manager import Apt


class ZlibConan(ConanFile):
    name = "zlib"
    package_type = "shared-library"
    settings = "os", "arch"

    def package_id(self):
        self.info.clear()

    def system_requirements(self):
        Apt(self).install(["zlib1g-dev"], check=True)

    def package_info(self):
        self.cpp_info.includedirs = []
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "ZLIB")
        self.cpp_info.set_property("cmake_target_name", "ZLIB::ZLIB")
        self.cpp_info.system_libs = ["z"]
