#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <pdp/comm/envelope.hpp>
#include <pdp/comm/message/stream/frame.hpp>
#include <pdp/comm/message/together/board.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/shm/memory.hpp>
#include <pdp/comm/shm/parking.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::shm {

/// A random number that identifies the memory of one job.
using Nonce = std::array<unsigned char, 16>;

/// The beginning of a world's memory. A program of another version can read it and detect the difference.
struct Header {
  static constexpr std::array<char, 8> pdp{'p', 'd', 'p', ' ', 's', 'h', 'm', '\n'};
  static constexpr std::uint32_t this_version = 3;

  std::array<char, 8> magic = pdp;
  std::uint32_t version = this_version;
  std::uint32_t frame_bytes = sizeof(stream::Frame);
  Nonce nonce{};
  std::int32_t size = 0;
  std::uint32_t ring_bytes = 0;

  friend bool operator==(const Header&, const Header&) = default;
};

/// The state of one rank that all ranks of the host can access.
struct alignas(64) Seat {
  /// `failed`: the rank gave up while the job was starting.
  enum Stage : std::uint32_t { absent, joined, ready, left, failed };

  std::atomic<std::uint32_t> stage{absent};
  std::atomic<std::int32_t> process{0};  // the process id; valid from `joined` on
  std::atomic<std::int32_t> pipe{0};     // the descriptor to which others write to wake the rank, or 0; valid from `joined` on
  alignas(64) Parking parking;
  alignas(64) std::atomic<std::uint32_t> beats{0};  // the number of heartbeats so far
};

/// How many bytes of a ring have been written and read since the beginning.
struct RingCounters {
  alignas(64) std::atomic<std::uint64_t> written{0};  // by the sender
  alignas(64) std::atomic<std::uint64_t> read{0};     // by the receiver
};

/// The memory of a world on one host: a header, a seat and a board for each rank, and a ring of bytes with its counters for each ordered
/// pair of ranks. Each ring is mapped twice in a row, so that data across its end is contiguous.
class Segment {
 public:
  /// Creates the memory of a world. Throws ConfigError if the system has none.
  static Segment create(int size, const Nonce& nonce) {
    const Header header{.nonce = nonce, .size = size, .ring_bytes = ring_bytes_for(size)};
    Segment segment{make_file(Layout{header}.bytes), header};
    // The memory is zero, which is the initial state of the counters and of absent ranks' seats.
    ::new (segment.base_) Header{header};
    return segment;
  }

  /// Maps the memory that another rank has created. `file`: an open descriptor of it. Throws ConfigError if its nonce, size or version is
  /// not the expected one.
  static Segment open(Descriptor file, const Nonce& nonce, int size) {
    Header header;
    const Header expected{.nonce = nonce, .size = size, .ring_bytes = ring_bytes_for(size)};
    struct stat about {};
    const bool readable = ::fstat(file.get(), &about) == 0 && ::pread(file.get(), &header, sizeof header, 0) == sizeof header;
    if (!readable || header.magic != expected.magic || header.nonce != nonce)
      throw ConfigError{"the shared memory named in the job's store does not belong to these ranks; do two jobs use one store?"};
    if (header != expected || about.st_size != static_cast<off_t>(Layout{expected}.bytes))
      throw ConfigError{text("the ranks' shared memory is for ", header.size, " ranks by version ", header.version,
                             " of pdp's layout; this rank expects ", size, " ranks and version ", expected.version,
                             "; all ranks must run the same build of the program")};
    return Segment{std::move(file), expected};
  }

  Segment(Segment&& other) noexcept
      : file_{std::move(other.file_)}, layout_{other.layout_}, base_{std::exchange(other.base_, nullptr)}, rings_{other.rings_} {}
  Segment& operator=(Segment&&) = delete;
  ~Segment() {
    if (base_ == nullptr) return;
    ::munmap(base_, layout_.rings);
    ::munmap(rings_, layout_.ring_span());
  }

  [[nodiscard]] int size() const { return layout_.size; }
  [[nodiscard]] std::size_t ring_bytes() const { return layout_.ring_bytes; }
  [[nodiscard]] Seat& seat(int rank) const { return reinterpret_cast<Seat*>(base_ + layout_.seats)[rank]; }
  [[nodiscard]] RingCounters& counters(int from, int to) const {
    return reinterpret_cast<RingCounters*>(base_ + layout_.counters)[layout_.pair(from, to)];
  }
  [[nodiscard]] together::Board& board(int rank) const { return reinterpret_cast<together::Board*>(base_ + layout_.boards)[rank]; }
  /// Returns the bytes of a ring, mapped twice in a row.
  [[nodiscard]] std::byte* ring(int from, int to) const { return rings_ + 2 * layout_.ring_bytes * layout_.pair(from, to); }

  /// Maps the rings between a rank and all others. Call this once before the rings are used.
  void map_rings_of(int rank) {
    for (int other = 0; other < size(); ++other) {
      if (other == rank) continue;
      for (const std::size_t pair : {layout_.pair(rank, other), layout_.pair(other, rank)}) {
        for (const std::size_t time : {std::size_t{0}, std::size_t{1}})
          if (::mmap(rings_ + (2 * pair + time) * layout_.ring_bytes, layout_.ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                     file_.get(), static_cast<off_t>(layout_.rings + pair * layout_.ring_bytes)) == MAP_FAILED)
            fail_to("map", errno);
      }
    }
  }

  /// Returns the descriptor by which other processes open the memory, until close_file().
  [[nodiscard]] int file() const { return file_.get(); }
  void close_file() { file_.close(); }

 private:
  struct Layout {
    explicit Layout(const Header& header) : size{header.size}, ring_bytes{header.ring_bytes} {
      const auto ranks = as_size(size);
      seats = up_to(sizeof(Header), alignof(Seat));
      counters = seats + ranks * sizeof(Seat);
      const auto page = as_size(::sysconf(_SC_PAGESIZE));
      boards = up_to(counters + ranks * ranks * sizeof(RingCounters), page);
      rings = up_to(boards + ranks * sizeof(together::Board), page);
      bytes = rings + ranks * ranks * ring_bytes;
    }
    static std::size_t up_to(std::size_t offset, std::size_t multiple) { return (offset + multiple - 1) / multiple * multiple; }
    [[nodiscard]] std::size_t pair(int from, int to) const { return as_size(from) * as_size(size) + as_size(to); }
    [[nodiscard]] std::size_t pairs() const { return as_size(size) * as_size(size); }
    [[nodiscard]] std::size_t ring_span() const { return 2 * ring_bytes * pairs(); }

    int size;
    std::size_t ring_bytes, seats = 0, counters = 0, boards = 0, rings = 0, bytes = 0;
  };

  /// Returns the size of a ring in bytes, a power of two from 64 KiB to 2 MiB. Larger rings hold more whole messages: the rest of a longer
  /// message waits until its sender makes progress, and that rank may be computing. With up to 32 ranks, all rings together take at most 64
  /// MiB.
  static std::uint32_t ring_bytes_for(int size) {
    constexpr std::size_t most = 2048 * 1024, least = 64 * 1024, of_all = 64 * 1024 * 1024;
    const auto ranks = as_size(size);
    return static_cast<std::uint32_t>(std::clamp(std::bit_floor(of_all / (ranks * ranks)), least, most));
  }

  Segment(Descriptor file, const Header& header) : file_{std::move(file)}, layout_{header} {
    void* const base = ::mmap(nullptr, layout_.rings, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (base == MAP_FAILED) fail_to("map", errno);
    base_ = static_cast<std::byte*>(base);
    // Only reserves addresses; map_rings_of() maps each ring there twice.
    void* const room = ::mmap(nullptr, layout_.ring_span(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
      const int reason = errno;
      ::munmap(std::exchange(base_, nullptr), layout_.rings);
      fail_to("map", reason);
    }
    rings_ = static_cast<std::byte*>(room);
  }

  Descriptor file_;
  Layout layout_;
  std::byte* base_ = nullptr;
  std::byte* rings_ = nullptr;
};

}  // namespace pdp::comm::shm
