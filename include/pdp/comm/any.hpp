#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <pdp/comm/basic_communicator.hpp>

namespace pdp::comm {

/// Type-erased Calls, for a backend that is chosen at run time. Each call costs one more indirect jump and allocates nothing.
class AnyCalls {
  /// The Work of any backend, stored in place.
  class AnyWork {
   public:
    AnyWork() = default;
    template <class W>
    requires(!std::same_as<W, AnyWork>) explicit AnyWork(W work) : table_{&table_of<W>} {
      static_assert(fits<W>,
                    "pdp: the Work of this communicator does not fit into that of comm::Any: it must take at most 48 bytes, and "
                    "its move constructor must be noexcept");
      ::new (static_cast<void*>(place_)) W{std::move(work)};
    }
    AnyWork(AnyWork&& other) noexcept { take(other); }
    AnyWork& operator=(AnyWork&& other) noexcept {
      if (this != &other) {
        clear();
        take(other);
      }
      return *this;
    }
    ~AnyWork() { clear(); }

    [[nodiscard]] bool pending() const { return table_ != nullptr && table_->pending(place_); }
    [[nodiscard]] bool done() { return table_ == nullptr || table_->done(place_); }
    void wait() {
      if (table_ != nullptr) table_->wait(place_);
    }

    static constexpr std::size_t room = 48;
    template <class W>
    static constexpr bool fits = sizeof(W) <= room && alignof(W) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<W>;

   private:
    struct Table {
      bool (*pending)(const std::byte*);
      bool (*done)(std::byte*);
      void (*wait)(std::byte*);
      void (*move)(std::byte* from, std::byte* to) noexcept;
      void (*destroy)(std::byte*) noexcept;
    };
    template <class W>
    static W* at(std::byte* place) {
      return std::launder(reinterpret_cast<W*>(place));
    }
    template <class W>
    static constexpr Table table_of{[](const std::byte* place) { return std::launder(reinterpret_cast<const W*>(place))->pending(); },
                                    [](std::byte* place) { return at<W>(place)->done(); }, [](std::byte* place) { at<W>(place)->wait(); },
                                    [](std::byte* from, std::byte* to) noexcept {
                                      ::new (static_cast<void*>(to)) W{std::move(*at<W>(from))};
                                      at<W>(from)->~W();
                                    },
                                    [](std::byte* place) noexcept { at<W>(place)->~W(); }};

    void take(AnyWork& other) noexcept {
      table_ = std::exchange(other.table_, nullptr);
      if (table_ != nullptr) table_->move(other.place_, place_);
    }
    void clear() noexcept {
      if (table_ != nullptr) std::exchange(table_, nullptr)->destroy(place_);
    }

    const Table* table_ = nullptr;
    alignas(std::max_align_t) std::byte place_[room];
  };

 public:
  using Work = AnyWork;
  /// Whether the Work type W of a backend fits into Any's Work.
  template <class W>
  static constexpr bool holds = AnyWork::fits<W>;

  /// `name`: the name of the backend, a string literal; empty if it has none.
  template <class C>
  requires(!std::same_as<C, AnyCalls>) && Calls<C> explicit AnyCalls(C calls, std::string_view name = {})
      : held_{std::make_unique<Of<C, C>>(std::move(calls), name)} {}
  /// Borrows the calls of a backend.
  template <Calls C>
  AnyCalls(std::reference_wrapper<C> calls, std::string_view name) : held_{std::make_unique<Of<C, C&>>(calls.get(), name)} {}

  [[nodiscard]] std::string_view name() const { return held_->name; }
  [[nodiscard]] int rank() const { return held_->rank(); }
  [[nodiscard]] int size() const { return held_->size(); }
  [[nodiscard]] Duration deadline() const { return held_->deadline(); }
  void deadline(Duration duration) { held_->deadline(duration); }
  /// Throws ConfigError if the backend has no heartbeat.
  void heartbeat(Duration duration) { held_->heartbeat(duration); }
  void progress() { held_->progress(); }
  void wait_for_progress(TimePoint until) { held_->wait_for_progress(until); }
  void abort(const std::string& reason) { held_->abort(reason); }
  Work start(const Request& request) { return held_->start(request); }
  [[nodiscard]] AnyCalls split(int color, int key) { return held_->split(color, key); }
  Region allocate(std::size_t bytes) { return held_->allocate(bytes); }
  [[nodiscard]] bool shares_memory() const { return held_->shares_memory(); }
  void begin_group() { held_->begin_group(); }
  void end_group() { held_->end_group(); }

 private:
  struct Held {
    explicit Held(std::string_view backend) : name{backend} {}
    virtual ~Held() = default;
    [[nodiscard]] virtual int rank() const = 0;
    [[nodiscard]] virtual int size() const = 0;
    [[nodiscard]] virtual Duration deadline() const = 0;
    virtual void deadline(Duration) = 0;
    virtual void heartbeat(Duration) = 0;
    virtual void progress() = 0;
    virtual void wait_for_progress(TimePoint until) = 0;
    virtual void abort(const std::string&) = 0;
    virtual Work start(const Request&) = 0;
    virtual AnyCalls split(int color, int key) = 0;
    virtual Region allocate(std::size_t bytes) = 0;
    [[nodiscard]] virtual bool shares_memory() const = 0;
    virtual void begin_group() = 0;
    virtual void end_group() = 0;

    std::string_view name;
  };
  /// `Kept`: C if the calls are owned, C& if they are borrowed.
  template <Calls C, class Kept>
  struct Of final : Held {
    Of(Kept&& made, std::string_view backend) : Held{backend}, calls{std::forward<Kept>(made)} {}
    [[nodiscard]] int rank() const override { return calls.rank(); }
    [[nodiscard]] int size() const override { return calls.size(); }
    [[nodiscard]] Duration deadline() const override { return calls.deadline(); }
    void deadline(Duration duration) override { calls.deadline(duration); }
    void heartbeat(Duration duration) override {
      if constexpr (requires { calls.heartbeat(duration); })
        calls.heartbeat(duration);
      else
        throw ConfigError{text("rank ", calls.rank(), ": a heartbeat was set, but ", name.empty() ? "this communicator" : name,
                               " does not send heartbeats; remove the call")};
    }
    void progress() override { calls.progress(); }
    void wait_for_progress(TimePoint until) override { comm::wait_for_progress(calls, until); }
    void abort(const std::string& reason) override { calls.abort(reason); }
    Work start(const Request& request) override {
      if (!request.waits_at_once) return Work{calls.start(request)};
      complete(calls, request);
      return {};
    }
    AnyCalls split(int color, int key) override {
      if constexpr (std::same_as<C, AnyCalls>)
        return calls.split(color, key);
      else
        return AnyCalls{calls.split(color, key), name};
    }
    Region allocate(std::size_t bytes) override { return allocate_region(calls, bytes); }
    [[nodiscard]] bool shares_memory() const override { return comm::shares_memory(calls); }
    void begin_group() override {
      if constexpr (GroupsCalls<C>) calls.begin_group();
    }
    void end_group() override {
      if constexpr (GroupsCalls<C>) calls.end_group();
    }

    Kept calls;
  };

  std::unique_ptr<Held> held_;
};
static_assert(Calls<AnyCalls>);

/// A communicator of host memory with a backend that is chosen at run time: Any{std::move(world)}.
class Any : public BasicCommunicator<AnyCalls> {
 public:
  template <class Comm>
  requires Calls<typename Comm::Erased>
  explicit Any(Comm world) : BasicCommunicator{AnyCalls{world.release(), traits_of<Comm>.name}} {
    static_assert(!HasDeviceBuffers<Comm>,
                  "pdp: comm::Any is for communicators of host memory, but this one takes GPU memory; a program that uses both "
                  "kinds must call launch::run for each");
  }
  Any(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  /// Borrows a communicator, which must outlive the returned Any. Calls through the communicator and through the Any are calls of the same
  /// group.
  template <class Comm>
  requires Calls<typename Comm::Erased> &&(!HasDeviceBuffers<Comm>)static Any borrow(Comm& world) {
    return Any{BasicCommunicator{AnyCalls{std::ref(world.erased()), traits_of<Comm>.name}}};
  }
  [[nodiscard]] Any split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Returns the name of the backend, such as "tcp"; empty if it has none.
  [[nodiscard]] std::string_view name() const { return erased().name(); }
};

}  // namespace pdp::comm
