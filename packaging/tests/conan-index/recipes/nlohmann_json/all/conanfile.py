"""The system's nlohmann-json3-dev: its headers are copied, so that a test notices if they are found elsewhere."""

from conan import ConanFile
from conan.tools.files import copy
from conan.tools.system.package_manager import Apt


class NlohmannJsonConan(ConanFile):
    name = "nlohmann_json"
    package_type = "header-library"
    settings = "os", "arch"

    def package_id(self):
        self.info.clear()

    def system_requirements(self):
        Apt(self).install(["nlohmann-json3-dev"], check=True)

    def package(self):
        copy(self, "nlohmann/*", "/usr/include", f"{self.package_folder}/include")

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "nlohmann_json")
        self.cpp_info.set_property("cmake_target_name", "nlohmann_json::nlohmann_json")
