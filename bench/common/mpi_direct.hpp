// MPI's own functions under the names of a communicator's operations, called without pdp: the baseline for comm::Mpi.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include <pdp/comm/operation.hpp>
#include <pdp/comm/region.hpp>

namespace bench {

class MpiDirect {
 public:
  static constexpr std::string_view name{"mpi-direct"};
  static constexpr std::string_view launcher{"mpirun"};
  using Values = std::span<float>;
  using Sum = pdp::comm::Sum;

  static MpiDirect start() {
    // Initialises MPI as comm::Mpi does, for a fair comparison: with plain MPI_Init, small calls of Open MPI are 0.2 us faster.
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    return MpiDirect{};
  }
  static void end_job(int exit_code) { MPI_Abort(MPI_COMM_WORLD, exit_code); }
  MpiDirect(MpiDirect&& other) noexcept : rank_{other.rank_}, size_{std::exchange(other.size_, 0)} {}
  MpiDirect& operator=(MpiDirect&& other) noexcept {
    rank_ = other.rank_;
    std::swap(size_, other.size_);
    return *this;
  }
  ~MpiDirect() {
    if (size_ > 0) MPI_Finalize();
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  template <class T>
  [[nodiscard]] pdp::comm::Registered<T> allocate(std::size_t count) const {
    return pdp::comm::Registered<T>{pdp::comm::Region::ordinary(count * sizeof(T))};
  }

  void barrier() const { MPI_Barrier(MPI_COMM_WORLD); }
  void broadcast(Values v, int root) const { MPI_Bcast(v.data(), count(v), MPI_FLOAT, root, MPI_COMM_WORLD); }
  void reduce(Values v, Sum, int root) const {
    const bool at_root = rank_ == root;
    MPI_Reduce(at_root ? MPI_IN_PLACE : v.data(), at_root ? v.data() : nullptr, count(v), MPI_FLOAT, MPI_SUM, root, MPI_COMM_WORLD);
  }
  void all_reduce(Values v, Sum) const { MPI_Allreduce(MPI_IN_PLACE, v.data(), count(v), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
  void reduce_scatter(Values whole, Values part, Sum) const {
    MPI_Reduce_scatter_block(whole.data(), part.data(), count(part), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void all_gather(Values part, Values whole) const {
    MPI_Allgather(part.data(), count(part), MPI_FLOAT, whole.data(), count(part), MPI_FLOAT, MPI_COMM_WORLD);
  }
  void gather(Values part, Values whole, int root) const {
    MPI_Gather(part.data(), count(part), MPI_FLOAT, whole.data(), count(part), MPI_FLOAT, root, MPI_COMM_WORLD);
  }
  void scatter(Values whole, Values part, int root) const {
    MPI_Scatter(whole.data(), count(part), MPI_FLOAT, part.data(), count(part), MPI_FLOAT, root, MPI_COMM_WORLD);
  }
  void all_to_all(Values in, Values out) const {
    const int each = count(in) / size_;
    MPI_Alltoall(in.data(), each, MPI_FLOAT, out.data(), each, MPI_FLOAT, MPI_COMM_WORLD);
  }
  void send_recv(Values out, int to, Values in, int from) const {
    std::array<MPI_Request, 2> requests{};
    MPI_Irecv(in.data(), count(in), MPI_FLOAT, from, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.data(), count(out), MPI_FLOAT, to, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  }

 private:
  MpiDirect() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  static int count(Values values) { return static_cast<int>(values.size()); }

  int rank_ = 0;
  int size_ = 1;
};

}  // namespace bench
