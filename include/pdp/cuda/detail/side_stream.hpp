#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <new>
#include <span>
#include <vector>

#include <pdp/cuda/detail/library.hpp>

namespace pdp::cuda {

using Bytes = std::span<const std::byte>;

/// A second stream of a device, for products with results that are needed late: the gradients of weights. It remembers the memory that
/// these products read and write until the main stream waits for them. So an operation of the main stream waits only if it writes memory
/// that they read or write, or reads memory that they write.
class SideStream {
 public:
  explicit SideStream(int device) : device_{device} {
    const OnDevice on{device};
    try {
      check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
      for (cudaEvent_t* const event : {&begin_, &end_})
        check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    } catch (...) {
      release();
      throw;
    }
  }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;
  ~SideStream() { release(); }

  [[nodiscard]] cudaStream_t stream() const { return stream_; }

  /// Announces that the next operation of the main stream reads `input` and writes `output`. Until unmark(), a product with `input` as its
  /// right operand waits only for the work before that operation.
  void mark(cudaStream_t main, const void* input, Bytes output) {
    check("cudaEventRecord", cudaEventRecord(begin_, main));
    marked_ = input;
    marked_output_ = output;
  }
  void unmark() { marked_ = nullptr; }

  /// Makes the side stream wait for the work that writes the operands of a product.
  void follow(cudaStream_t main, Bytes left, Bytes right) {
    if (marked_ != right.data() || overlap(marked_output_, left)) check("cudaEventRecord", cudaEventRecord(begin_, main));
    check("cudaStreamWaitEvent", cudaStreamWaitEvent(stream_, begin_, 0));
  }
  /// Registers a product that was given to the side stream.
  void add(std::initializer_list<Bytes> reads, std::initializer_list<Bytes> writes) {
    unmark();
    check("cudaEventRecord", cudaEventRecord(end_, stream_));
    reads_.insert(reads_.end(), reads);
    writes_.insert(writes_.end(), writes);
  }

  /// Makes the main stream wait for the side stream if an operation with these reads and writes requires it.
  void join(cudaStream_t main, std::initializer_list<Bytes> reads, std::initializer_list<Bytes> writes) {
    const auto meet = [](std::initializer_list<Bytes> these, const std::vector<Bytes>& those) {
      return std::ranges::any_of(these,
                                 [&](Bytes each) { return std::ranges::any_of(those, [&](Bytes other) { return overlap(each, other); }); });
    };
    if (meet(reads, writes_) || meet(writes, reads_) || meet(writes, writes_)) join(main);
  }
  void join(cudaStream_t main) {
    if (writes_.empty()) return;
    check("cudaStreamWaitEvent", cudaStreamWaitEvent(main, end_, 0));
    forget();
  }
  /// Forgets the products in flight, for example after a recording that is discarded.
  void forget() {
    unmark();
    reads_.clear();
    writes_.clear();
  }

 private:
  static bool overlap(Bytes a, Bytes b) {
    return std::less<>{}(a.data(), b.data() + b.size()) && std::less<>{}(b.data(), a.data() + a.size());
  }
  void release() noexcept {
    const OnDevice on{device_, std::nothrow};
    if (stream_ != nullptr) cudaStreamSynchronize(stream_);
    for (cudaEvent_t event : {begin_, end_})
      if (event != nullptr) cudaEventDestroy(event);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  int device_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;  // begin_: the next product waits for it; end_: recorded after the last product
  const void* marked_ = nullptr;
  Bytes marked_output_;
  std::vector<Bytes> reads_, writes_;  // of products that the main stream has not waited for
};

}  // namespace pdp::cuda
