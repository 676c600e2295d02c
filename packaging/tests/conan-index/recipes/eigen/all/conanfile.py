"""The system's libeigen3-dev: its headers are copied, so that a test notices if they are found elsewhere."""

from conan import ConanFile
from conan.tools.files import copy
from conan.tools.system.package_manager import Apt


class EigenConan(ConanFile):
    name = "eigen"
    package_type = "header-library"
    settings = "os", "arch"

    def package_id(self):
        self.info.clear()

    def system_requirements(self):
        Apt(self).install(["libeigen3-dev"], check=True)

    def package(self):
        copy(self, "*", "/usr/include/eigen3", f"{self.package_folder}/include")

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("pkg_config_name", "eigen3")
        self.cpp_info.set_property("cmake_file_name", "Eigen3")
        self.cpp_info.set_property("cmake_target_name", "Eigen3::Eigen")
