// Gloo's own functions under the names of a communicator's operations, called without pdp: the baseline for comm::Gloo.
#pragma once

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/join/store.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/comm/region.hpp>
#include <pdp/core/error.hpp>

namespace bench {

class GlooDirect {
 public:
  static constexpr std::string_view name{"gloo-direct"};
  using Values = std::span<float>;
  using Sum = pdp::comm::Sum;

  static GlooDirect connect(pdp::comm::StoreView store, int rank, int size, pdp::comm::TimePoint deadline) {
    gloo::transport::tcp::attr where;
    where.hostname = store.local_address();
    auto device = gloo::transport::tcp::CreateDevice(where);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    Store addresses{store, deadline};
    context->connectFullMesh(addresses, device);
    return GlooDirect{std::move(context)};
  }

  [[nodiscard]] int rank() const { return world_->rank; }
  [[nodiscard]] int size() const { return world_->size; }
  template <class T>
  [[nodiscard]] pdp::comm::Registered<T> allocate(std::size_t count) const {
    return pdp::comm::Registered<T>{pdp::comm::Region::ordinary(count * sizeof(T))};
  }

  void barrier() const {
    gloo::BarrierOptions options{world_};
    gloo::barrier(options);
  }
  void broadcast(Values v, int root) const {
    gloo::BroadcastOptions options{world_};
    options.setOutput(v.data(), v.size());
    options.setRoot(root);
    gloo::broadcast(options);
  }
  void reduce(Values v, Sum, int root) const {
    gloo::ReduceOptions options{world_};
    options.setOutput(v.data(), v.size());
    options.setReduceFunction(&sum);
    options.setRoot(root);
    gloo::reduce(options);
  }
  void all_reduce(Values v, Sum) const {
    gloo::AllreduceOptions options{world_};
    options.setOutput(v.data(), v.size());
    options.setReduceFunction(&sum);
    gloo::allreduce(options);
  }
  void reduce_scatter(Values, Values, Sum) const {
    throw pdp::UsageError{"gloo-direct has no reduce_scatter: that of Gloo has a different interface"};
  }
  void all_gather(Values part, Values whole) const {
    gloo::AllgatherOptions options{world_};
    options.setInput(part.data(), part.size());
    options.setOutput(whole.data(), whole.size());
    gloo::allgather(options);
  }
  void gather(Values part, Values whole, int root) const {
    gloo::GatherOptions options{world_};
    options.setInput(part.data(), part.size());
    if (rank() == root) options.setOutput(whole.data(), whole.size());
    options.setRoot(root);
    gloo::gather(options);
  }
  void scatter(Values whole, Values part, int root) const {
    gloo::ScatterOptions options{world_};
    std::vector<float*> shards;
    for (std::size_t begin = 0; rank() == root && begin < whole.size(); begin += part.size()) shards.push_back(whole.data() + begin);
    if (rank() == root) options.setInputs(shards, part.size());
    options.setOutput(part.data(), part.size());
    options.setRoot(root);
    gloo::scatter(options);
  }
  void all_to_all(Values in, Values out) const {
    gloo::AlltoallOptions options{world_};
    options.setInput(in.data(), in.size());
    options.setOutput(out.data(), out.size());
    gloo::alltoall(options);
  }
  void send_recv(Values out, int to, Values in, int from) const {
    constexpr std::uint64_t slot = 1 << 20;
    const auto sent = world_->createUnboundBuffer(out.data(), out.size_bytes());
    const auto received = world_->createUnboundBuffer(in.data(), in.size_bytes());
    received->recv(from, slot);
    sent->send(to, slot);
    received->waitRecv(world_->getTimeout());
    sent->waitSend(world_->getTimeout());
  }

 private:
  /// Gives Gloo access to the job's store.
  class Store : public gloo::rendezvous::Store {
   public:
    Store(const pdp::comm::StoreView& job, pdp::comm::TimePoint deadline) : job_{job}, deadline_{deadline} {}
    void set(const std::string& key, const std::vector<char>& data) override { job_.set(key, {data.data(), data.size()}); }
    std::vector<char> get(const std::string& key) override {
      const std::string value = job_.wait(key, deadline_);
      return {value.begin(), value.end()};
    }
    void wait(const std::vector<std::string>& keys) override {
      for (const std::string& key : keys) static_cast<void>(job_.wait(key, deadline_));
    }

   private:
    pdp::comm::StoreView job_;
    pdp::comm::TimePoint deadline_;
  };

  explicit GlooDirect(std::shared_ptr<gloo::Context> world) : world_{std::move(world)} {}
  static void sum(void* to, const void* left, const void* right, std::size_t count) {
    const auto *a = static_cast<const float*>(left), *b = static_cast<const float*>(right);
    auto* out = static_cast<float*>(to);
    for (std::size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
  }

  std::shared_ptr<gloo::Context> world_;
};

}  // namespace bench
