"""A model of the mixin for CUDA."""

from spack.package import PackageBase, depends_on, variant


class CudaPackage(PackageBase):
    variant("cuda", default=False, description="Build with CUDA")
    variant("cuda_arch", default=("none",), description="CUDA architecture", when="+cuda")
    depends_on("cuda", when="+cuda")
