# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

import os

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Pdp(CMakePackage, CudaPackage):
    """A header-only C++20 library that trains neural networks on many threads, processes,
    machines and GPUs."""

    homepage = "@HOMEPAGE@"
    url = "@URL@"
    git = "@HOMEPAGE@.git"

    license("BSD-3-Clause")

    version("main", branch="main")
    version("@VERSION@", sha256="@SHA256@")

    variant("shm", default=True, description="Ranks that are processes of one host")
    variant("tcp", default=True, description="Ranks that are processes on any hosts")
    variant("mpi", default=False, description="Ranks that an MPI launcher starts")
    variant("gloo", default=False, description="Ranks that are processes, connected by Gloo")
    variant("nccl", default=False, description="Values in GPU memory, sent by NCCL", when="+cuda")
    variant("onednn", default=False, description="Matrix products by oneDNN")
    variant("tools", default=False, description="Build the program pdp-checkpoint")

    generator("ninja")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type=("build", "test"))
    depends_on("ninja", type=("build", "test"))

    depends_on("eigen@3.4:")
    depends_on("fmt@9:")
    depends_on("nlohmann-json@3.10:")
    depends_on("xxhash@0.8:")
    depends_on("zlib-api")
    depends_on("openssl@1.1.1:", when="+shm")
    depends_on("openssl@1.1.1:", when="+tcp")
    depends_on("openssl@1.1.1:", when="+gloo")
    depends_on("openssl@1.1.1:", when="+nccl")
    depends_on("asio@1.22:", when="+tcp")
    depends_on("mpi@3:", when="+mpi")
    depends_on("gloo", when="+gloo")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl@2.27:", when="+nccl")
    depends_on("onednn@2:", when="+onednn")
    depends_on("cli11@2.1:", when="+tools")

    requires("platform=linux", msg="pdp uses futexes, memfd and process_vm_readv")
    requires(
        "target=x86_64:",
        "target=aarch64:",
        policy="one_of",
        msg="pdp runs on x86-64 and aarch64",
    )
    conflicts("%gcc@:11", msg="pdp needs g++ 12 or newer for C++20")
    conflicts("%clang@:15", msg="pdp needs clang 16 or newer for C++20")

    sanity_check_is_file = [
        join_path("include", "pdp", "pdp.hpp"),
        join_path("share", "cmake", "pdp", "pdp-config.cmake"),
        join_path("share", "pkgconfig", "pdp.pc"),
    ]
    sanity_check_is_dir = [join_path("share", "pdp", "src")]

    def cmake_args(self):
        args = [
            self.define_from_variant("PDP_WITH_SHM", "shm"),
            self.define_from_variant("PDP_WITH_TCP", "tcp"),
            self.define_from_variant("PDP_WITH_MPI", "mpi"),
            self.define_from_variant("PDP_WITH_GLOO", "gloo"),
            self.define_from_variant("PDP_WITH_CUDA", "cuda"),
            self.define("PDP_WITH_NCCL", self.spec.satisfies("+nccl")),
            self.define_from_variant("PDP_WITH_ONEDNN", "onednn"),
            # Spack has no package of libcsv.
            self.define("PDP_WITH_CSV", False),
            self.define("PDP_WITH_NPZ", False),
            self.define_from_variant("PDP_BUILD_TOOLS", "tools"),
            self.define("PDP_BUILD_BENCH", False),
            self.define("PDP_BUILD_EXAMPLES", False),
            self.define("PDP_BUILD_TESTS", False),
        ]
        # The kernels are compiled in the project that uses pdp. Here CMake only tries nvcc.
        if self.spec.satisfies("+cuda") and not self.spec.satisfies("cuda_arch=none"):
            architectures = self.spec.variants["cuda_arch"].value
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", architectures))
        return args

    def test_train(self):
        """train a small model on two ranks"""
        cmake = self.spec["cmake"].command
        prefixes = [self.prefix, *get_cmake_prefix_path(self)]
        source = self.test_suite.current_test_data_dir
        cmake(
            "-S",
            source,
            "-B",
            "build",
            "-G",
            "Ninja",
            f"-DCMAKE_MAKE_PROGRAM={self.spec['ninja'].command.path}",
            f"-DCMAKE_CXX_COMPILER={os.environ['CXX']}",
            "-DCMAKE_BUILD_TYPE=Release",
            self.define("CMAKE_PREFIX_PATH", [str(prefix) for prefix in prefixes]),
        )
        cmake("--build", "build")
        train = which(join_path("build", "train"), required=True)
        has_processes = self.spec.satisfies("+shm") or self.spec.satisfies("+tcp")
        ranks = "--ranks" if has_processes else "--threads"
        out = train(ranks, "2", output=str.split, error=str.split)
        check_outputs([r"2 ranks of \w+, loss [0-9.]+ -> [0-9.]+"], out)
