"""The system's libssl-dev."""

from conan import ConanFile
from conan.tools.system.package_manager import Apt


class OpenSslConan(ConanFile):
    name = "openssl"
    package_type = "shared-library"
    settings = "os", "arch"

    def package_id(self):
        self.info.clear()

    def system_requirements(self):
        Apt(self).install(["libssl-dev"], check=True)

    def package_info(self):
        self.cpp_info.includedirs = []
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "OpenSSL")
        self.cpp_info.components["crypto"].set_property("cmake_target_name", "OpenSSL::Crypto")
        self.cpp_info.components["crypto"].set_property("pkg_config_name", "libcrypto")
        self.cpp_info.components["crypto"].includedirs = []
        self.cpp_info.components["crypto"].system_libs = ["crypto"]
