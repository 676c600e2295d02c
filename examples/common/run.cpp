#include "common/run.hpp"

#include <pdp/comm/hierarchical.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/run.hpp>

// CMake defines these if it has found the libraries.
#ifdef PDP_EXAMPLES_WITH_GLOO
#include <pdp/comm/gloo.hpp>
#endif
#ifdef PDP_EXAMPLES_WITH_MPI
#include <pdp/comm/mpi.hpp>
#endif

namespace examples {

int run(const pdp::launch::Options& options, const OnRank& function) {
  return pdp::launch::run<pdp::comm::Default, pdp::comm::Tcp, pdp::comm::Shm
#ifdef PDP_EXAMPLES_WITH_GLOO
                          ,
                          pdp::comm::Gloo
#endif
#ifdef PDP_EXAMPLES_WITH_MPI
                          ,
                          pdp::comm::Mpi
#endif
                          >(options, function);
}

int run_alone(const pdp::launch::Options& options, const OnRank& function) {
  return pdp::launch::run<pdp::comm::Self>(options, [&](pdp::comm::Self& self) {
    pdp::comm::Any world{self.split(0, self.rank())};
    function(world);
  });
}

#ifdef PDP_EXAMPLES_WITH_GPUS
int run_on_gpus(const pdp::launch::Options& options, const OnGpu<pdp::comm::Nccl>& function,
                const OnGpu<pdp::comm::CudaThread>& on_thread) {
  static_cast<void>(pdp::cuda::devices());  // throws once if there is no GPU, before it starts ranks that would throw one by one
  const auto run_with = [&]<class Comm>(const OnGpu<Comm>& on_rank) {
    return pdp::launch::run<Comm>(options, [&](Comm& world) { on_rank(world, pdp::cuda::Device{{.index = world.device()}}); });
  };
  if (options.threads && options.comm != pdp::comm::Nccl::name) return run_with(on_thread);
  return run_with(function);
}
#endif

void throw_without_gpus() {
  throw pdp::ConfigError{
      "--device cuda: this program was built without GPU support; build it with the CUDA toolkit, nvcc (in PATH or "
      "CUDACXX) and NCCL, without PDP_WITH_CUDA=OFF and without a sanitizer; or compute on the CPU"};
}

}  // namespace examples
