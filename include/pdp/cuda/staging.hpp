#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include <pdp/cuda/library.hpp>

namespace pdp::cuda {

/// Memory of the host that a device reaches, in pieces that are used in turn, so that the host fills one while the device reads another.
class Staging {
 public:
  explicit Staging(int device) : device_{device} {
    const OnDevice on{device};
    try {
      for (Piece& piece : pieces_) {
        check_host_room("cudaMallocHost", cudaMallocHost(&piece.memory, piece_bytes), device, piece_bytes);
        check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&piece.free, cudaEventDisableTiming));
      }
    } catch (...) {
      release();
      throw;
    }
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() { release(); }

  /// Gives copies to the stream, and waits where all pieces are still being read.
  void upload(const void* from, void* to, std::size_t bytes, cudaStream_t stream) {
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t some = std::min(piece_bytes, bytes - done);
      Piece& piece = pieces_[next_++ % pieces_.size()];
      check("cudaEventSynchronize", cudaEventSynchronize(piece.free));
      std::memcpy(piece.memory, static_cast<const std::byte*>(from) + done, some);
      check("cudaMemcpyAsync", cudaMemcpyAsync(static_cast<std::byte*>(to) + done, piece.memory, some, cudaMemcpyHostToDevice, stream));
      check("cudaEventRecord", cudaEventRecord(piece.free, stream));
      done += some;
    }
  }
  /// Copies when the stream has come so far.
  void download(const void* from, void* to, std::size_t bytes, cudaStream_t stream) {
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t some = std::min(piece_bytes, bytes - done);
      Piece& piece = pieces_[next_++ % pieces_.size()];
      check("cudaEventSynchronize", cudaEventSynchronize(piece.free));
      check("cudaMemcpyAsync",
            cudaMemcpyAsync(piece.memory, static_cast<const std::byte*>(from) + done, some, cudaMemcpyDeviceToHost, stream));
      check("cudaStreamSynchronize", cudaStreamSynchronize(stream));
      std::memcpy(static_cast<std::byte*>(to) + done, piece.memory, some);
      done += some;
    }
  }

 private:
  static constexpr std::size_t piece_bytes = std::size_t{1} << 20;
  struct Piece {
    void* memory = nullptr;
    cudaEvent_t free = nullptr;  // when the device has read it
  };

  void release() noexcept {
    const OnDevice on{device_, std::nothrow};
    for (Piece& piece : pieces_) {
      if (piece.free != nullptr) {
        cudaEventSynchronize(piece.free);
        cudaEventDestroy(piece.free);
      }
      if (piece.memory != nullptr) cudaFreeHost(piece.memory);
    }
  }

  int device_;
  std::array<Piece, 4> pieces_{};
  std::size_t next_ = 0;
};

}  // namespace pdp::cuda
