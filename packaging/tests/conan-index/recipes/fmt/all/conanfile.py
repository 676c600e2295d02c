"""The system's libfmt-dev."""

from conan import ConanFile
from conan.tools.system.package_manager import Apt


class FmtConan(ConanFile):
    name = "fmt"
    package_type = "shared-library"
    settings = "os", "arch"

    def package_id(self):
        self.info.clear()

    def system_requirements(self):
        Apt(self).install(["libfmt-dev"], check=True)

    def package_info(self):
        self.cpp_info.includedirs = []
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "fmt")
        self.cpp_info.set_property("cmake_target_name", "fmt::fmt")
        self.cpp_info.system_libs = ["fmt"]
