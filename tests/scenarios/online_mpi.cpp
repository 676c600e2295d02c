// Odd ranks of an MPI program simulate and send samples; even ranks train on them: mpirun -n 4 online_mpi
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

#include <pdp/comm/mpi.hpp>
#include <pdp/pdp.hpp>

namespace nn = pdp::nn;
constexpr pdp::Task surrogate{nn::Sequential{nn::Linear{2, 32}, nn::Tanh{}, nn::Linear{32, 1}}, pdp::loss::MeanSquaredError{},
                              pdp::optim::Adam{.lr = 0.01f}};
constexpr int batch = 32, steps = 600;

/// Each sample is x, y and sin(2 x) y.
std::vector<float> simulate(int step, int rank) {
  std::vector<float> samples;
  for (int i = 0; i < batch; ++i) {
    const float x = std::sin(static_cast<float>(37 * i + 11 * step + rank)), y = std::cos(static_cast<float>(53 * i + 7 * step + rank));
    samples.insert(samples.end(), {x, y, std::sin(2 * x) * y});
  }
  return samples;
}

void learn(MPI_Comm trainers, int partner) {
  pdp::comm::Mpi world{trainers};
  pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, surrogate, {.global_batch = batch * world.size(), .seed = 1}};
  std::vector<float> samples(3 * batch), x, y;
  for (int step = 0; step < steps; ++step) {
    MPI_Recv(samples.data(), 3 * batch, MPI_FLOAT, partner, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    x.clear(), y.clear();
    for (auto sample = samples.begin(); sample != samples.end(); sample += 3) {
      x.insert(x.end(), sample, sample + 2);
      y.push_back(sample[2]);
    }
    const auto totals = trainer.step(x, y);
    if (step + 1 == steps) pdp::print(world, "{}", totals.mean_loss() < 0.01 ? "learnt online" : "not learnt");
  }
}

int main(int argc, char** argv) {
  int provided = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  try {
    if (rank % 2 == 0) learn(half, rank + 1);
    for (int step = 0; rank % 2 == 1 && step < steps; ++step)
      MPI_Send(simulate(step, rank).data(), 3 * batch, MPI_FLOAT, rank - 1, step, MPI_COMM_WORLD);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Comm_free(&half);
  MPI_Finalize();
}
