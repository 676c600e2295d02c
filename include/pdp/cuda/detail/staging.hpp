#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <initializer_list>

#include <pdp/cuda/detail/library.hpp>

namespace pdp::cuda {

/// Pinned memory in pieces that are used in turn, so that the host fills one while the device reads another.
class Staging {
 public:
  explicit Staging(int device) : device_{device} {
    try {
      grow(4);
    } catch (...) {
      release();
      throw;
    }
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() { release(); }

  /// Makes enough pieces for data of these sizes together, but no more than some 64 MB.
  void reserve(std::initializer_list<std::size_t> bytes) { grow(std::min(pieces_for(bytes), most_pieces)); }
  /// Returns whether upload() can be called for data of these sizes without a wait for the device.
  [[nodiscard]] bool takes_at_once(std::initializer_list<std::size_t> bytes) {
    const std::size_t count = pieces_for(bytes);
    if (count > pieces_.size()) return false;
    for (std::size_t piece = 0; piece < count; ++piece)
      if (!is_reached("cudaEventQuery", cudaEventQuery(pieces_[(next_ + piece) % pieces_.size()].free))) return false;
    return true;
  }

  /// Starts a copy to the device, in the order of the stream. `from` may change on return. Waits if the device is still reading all pieces.
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
  /// Copies to the host. Waits until the stream has reached the copy.
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
  static constexpr std::size_t piece_bytes = std::size_t{1} << 20, most_pieces = 64;
  struct Piece {
    void* memory = nullptr;
    cudaEvent_t free = nullptr;  // recorded after the last upload from this piece
  };

  static std::size_t pieces_for(std::initializer_list<std::size_t> bytes) {
    std::size_t pieces = 0;
    for (const std::size_t each : bytes) pieces += (each + piece_bytes - 1) / piece_bytes;
    return pieces;
  }
  void grow(std::size_t pieces) {
    const OnDevice on{device_};
    while (pieces_.size() < pieces) {
      Piece piece;
      try {
        check_host_room("cudaMallocHost", cudaMallocHost(&piece.memory, piece_bytes), device_, piece_bytes);
        check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&piece.free, cudaEventDisableTiming));
        pieces_.push_back(piece);
      } catch (...) {
        release(piece);
        throw;
      }
    }
  }
  static void release(const Piece& piece) noexcept {
    if (piece.free != nullptr) {
      cudaEventSynchronize(piece.free);
      cudaEventDestroy(piece.free);
    }
    if (piece.memory != nullptr) cudaFreeHost(piece.memory);
  }
  void release() noexcept {
    const OnDevice on{device_, std::nothrow};
    for (const Piece& piece : pieces_) release(piece);
  }

  int device_;
  std::deque<Piece> pieces_;
  std::size_t next_ = 0;
};

}  // namespace pdp::cuda
