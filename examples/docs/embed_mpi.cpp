// The program of docs/how-to/embed.md: a simulation with its own main and MPI
// communicator, which trains a model on its results while it runs:
// mpirun -n 2 embed_mpi

#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

#include <mpi.h>

#include <pdp/comm/mpi.hpp>
#include <pdp/pdp.hpp>

// [simulation]
/// Pendulums of one rank. Each has an angle and a speed.
struct Pendulums {
  std::vector<float> state;  // [pendulums, 2]

  Pendulums(int count, int rank) {
    for (int i = 0; i < count; ++i) {
      state.push_back(std::sin(static_cast<float>(7 * i + rank)));
      state.push_back(std::cos(static_cast<float>(5 * i + rank)));
    }
  }
  void advance(float time) {
    for (std::size_t i = 0; i < state.size(); i += 2) {
      state[i + 1] -= time * std::sin(state[i]);
      state[i] += time * state[i + 1];
    }
  }
};
// [simulation]

// [train]
namespace nn = pdp::nn;

constexpr pdp::Task surrogate{
    nn::Sequential{nn::Linear{2, 32}, nn::Tanh{}, nn::Linear{32, 2}},
    pdp::loss::MeanSquaredError{}, pdp::optim::Adam{.lr = 3e-3f}};

/// Runs the simulation on all ranks of `communicator`, and trains a model that
/// predicts the state after a time of 0.2.
void simulate(MPI_Comm communicator) {
  constexpr int of_rank = 64;
  pdp::comm::Mpi world{communicator};
  Pendulums pendulums{of_rank, world.rank()};
  pdp::Trainer trainer{world,
                       pdp::strategy::DataParallel{},
                       surrogate,
                       {.global_batch = of_rank * world.size(), .seed = 1}};
  for (int step = 0; step <= 600; ++step) {
    const std::vector<float> before = pendulums.state;
    pendulums.advance(0.2f);
    const auto totals = trainer.step(before, pendulums.state);
    if (step % 200 == 0)
      pdp::print(world, "step {}: loss {:.6f}", step, totals.mean_loss());
  }
}
// [train]

// [main]
int main(int argc, char** argv) {
  int provided = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm simulation = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, /*color*/ 0, /*key*/ rank, &simulation);
  try {
    simulate(simulation);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Comm_free(&simulation);
  MPI_Finalize();
}
// [main]
