#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/comm/join/store.hpp>
#include <pdp/comm/nccl.hpp>
#include <pdp/comm/nccl/devices.hpp>
#include <pdp/comm/nccl/group.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::nccl {

/// Rank 0's answer to a rank: its device, and the id by which NCCL connects the ranks.
struct Appointment {
  int device = 0;
  ncclUniqueId id{};
};

/// The rendezvous of a world's ranks in the job's store. Each rank reports to rank 0, which answers with the rank's device and the id for
/// NCCL. A store may serve several worlds in sequence. So each rank counts its worlds, and the keys contain this count.
class Meeting {
 public:
  Meeting(const StoreView& store, int rank, int size)
      : store_{store}, prefix_{text("nccl/", store.add(text("nccl/worlds/", rank), 1), '/')}, rank_{rank}, size_{size} {}

  /// Reports to rank 0 and returns its answer. Every rank throws ConfigError if a rank has no GPU, or if several ranks would share a GPU.
  /// Throws Timeout at the deadline; the Timeout of rank 0 names the missing ranks.
  [[nodiscard]] Appointment attend(const Report& own, TimePoint deadline) const {
    store_.set(report_key(rank_), own.encode());
    if (rank_ == 0) appoint(deadline);
    std::string answer;
    try {
      answer = store_.wait(answer_key(rank_), deadline);
    } catch (const Timeout&) {
      if (Clock::now() < deadline) throw;  // the Timeout of another rank, which has reported it to all ranks
      throw Timeout{text("rank ", rank_, " of ", size_,
                         " ranks was not assigned a GPU by rank 0 before the deadline for the start (PDP_TIMEOUT); a rank was not started, "
                         "has failed, or cannot reach the job's store")};
    }
    if (answer.starts_with(refusal)) {
      if (rank_ != 0) store_.add(told_key(), 1);
      throw ConfigError{answer.substr(1)};
    }
    Appointment appointment;
    if (answer.size() != sizeof appointment)
      throw ConfigError{text("rank ", rank_, " found a malformed answer of rank 0 in the job's store; do all ranks run the same build?")};
    std::memcpy(&appointment, answer.data(), sizeof appointment);
    return appointment;
  }

 private:
  static constexpr char refusal = '!';

  [[nodiscard]] std::string report_key(int rank) const { return text(prefix_, "report/", rank); }
  [[nodiscard]] std::string answer_key(int rank) const { return text(prefix_, "answer/", rank); }
  [[nodiscard]] std::string told_key() const { return text(prefix_, "told"); }

  void appoint(TimePoint deadline) const {
    try {
      const std::vector<int> devices = place(collect(deadline), Nccl::shares_gpus());
      Appointment appointment;
      if (const ncclResult_t result = ncclGetUniqueId(&appointment.id); result != ncclSuccess)
        throw ConfigError{text("rank 0: ncclGetUniqueId failed: ", describe_error(result, nullptr))};
      for (int rank = 0; rank < size_; ++rank) {
        appointment.device = devices[as_size(rank)];
        store_.set(answer_key(rank), std::string_view{reinterpret_cast<const char*>(&appointment), sizeof appointment});
      }
    } catch (const ConfigError& error) {
      for (int rank = 0; rank < size_; ++rank) store_.set(answer_key(rank), text(refusal, error.what()));
      // Rank 0 may host the store: the others must read the answer before the error ends this process.
      const TimePoint until = std::min(deadline, Clock::now() + std::chrono::seconds{2});
      while (store_.add(told_key(), 0) < size_ - 1 && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }

  [[nodiscard]] std::vector<Report> collect(TimePoint deadline) const {
    std::vector<Report> reports;
    try {
      for (int rank = 0; rank < size_; ++rank) reports.push_back(Report::decode(store_.wait(report_key(rank), deadline)));
    } catch (const Timeout&) {
      std::string missing;
      for (int rank = 0; rank < size_; ++rank)
        if (!store_.get(report_key(rank))) missing += text(missing.empty() ? "rank " : ", rank ", rank);
      throw Timeout{
          text("rank 0 has not heard from ", missing.empty() ? "the last rank to arrive" : missing, " (of ", size_,
               " ranks) before the deadline for the start (PDP_TIMEOUT); a missing rank was not started, has failed, or cannot reach the "
               "job's store")};
    }
    return reports;
  }

  const StoreView& store_;
  std::string prefix_;
  int rank_, size_;
};

/// Connects the ranks by NCCL. Throws Timeout at the deadline, PeerLost for a remote or system error of NCCL, and ConfigError for its other
/// errors.
inline Handle connect(const Appointment& appointment, int rank, int size, TimePoint deadline) {
  check_cuda("cudaSetDevice", cudaSetDevice(appointment.device));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  const TimePoint begin = Clock::now();
  ncclResult_t result = ncclCommInitRankConfig(&comm, size, appointment.id, rank, &config);
  Handle handle{comm, appointment.device, true};
  const std::string begin_of_error =
      text("rank ", rank, ", on device ", appointment.device, ", could not be connected to the others by NCCL: ");
  while (result == ncclInProgress) {
    if (Clock::now() >= deadline) {
      handle.abort();
      throw Timeout{
          text(begin_of_error, "not all of the ", size, " ranks joined within ",
               std::lround(std::chrono::duration<double>(deadline - begin).count() * 1000),
               " ms (PDP_TIMEOUT); either one has failed (see its output), or the network blocks them (NCCL_DEBUG=INFO tells more, "
               "NCCL_SOCKET_IFNAME chooses the network)")};
    }
    std::this_thread::sleep_for(std::chrono::microseconds{100});
    result = handle.state();
  }
  if (result == ncclSuccess) return handle;
  const std::string what = text(begin_of_error, describe_error(result, handle.get()), "; NCCL_DEBUG=INFO tells more");
  handle.abort();
  if (result == ncclRemoteError || result == ncclSystemError) throw PeerLost{size == 2 ? 1 - rank : -1, what};
  throw ConfigError{what};
}

}  // namespace pdp::comm::nccl
