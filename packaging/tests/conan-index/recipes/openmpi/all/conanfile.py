"""The system's libopenmpi-dev."""

from conan import ConanFile
from conan.tools.system.package_manager import Apt


class OpenMpiConan(ConanFile):
    name = "openmpi"
    package_type = "shared-library"
    settings = "os", "arch"

    def package_id(self):
        self.info.clear()

    @property
    def _triplet(self):
        return {"x86_64": "x86_64-linux-gnu", "armv8": "aarch64-linux-gnu"}[str(self.settings.arch)]

    def system_requirements(self):
        Apt(self).install(["libopenmpi-dev"], check=True)

    def package_info(self):
        self.cpp_info.bindirs = []
        library = f"/usr/lib/{self._triplet}/openmpi"
        self.cpp_info.includedirs = [f"{library}/include"]
        self.cpp_info.libdirs = [f"{library}/lib"]
        self.cpp_info.libs = ["mpi"]
        self.cpp_info.defines = ["OMPI_SKIP_MPICXX"]
