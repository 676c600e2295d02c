"""A model of the build system class for CMake."""

from spack.package import PackageBase, depends_on, variant


def generator(*names, default=None):
    variant("generator", default=default or names[0], description="the generator of the build system")


class CMakePackage(PackageBase):
    depends_on("cmake", type="build")

    def define(self, name, value):
        if isinstance(value, bool):
            return f"-D{name}:BOOL={'ON' if value else 'OFF'}"
        if isinstance(value, (list, tuple)):
            return f"-D{name}:STRING={';'.join(value)}"
        return f"-D{name}:STRING={value}"

    def define_from_variant(self, name, variant):
        if variant not in {known for (known,), _ in self.recorded("variant")}:
            raise KeyError(f"{variant} is no variant")
        return self.define(name, self.spec.variants[variant].value) if variant in self.spec.variants else ""
