#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include <pdp/core/requirements.hpp>

namespace pdp::detail {

/// A fixed number of workspaces, which threads use in turn.
template <class Workspace>
class Workspaces {
 public:
  /// A workspace that a thread has taken. The destructor returns it. Borrows the Workspaces.
  class [[nodiscard]] Taken {
   public:
    explicit Taken(Workspaces& from) : from_{from}, own_{from.take()} {}
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    ~Taken() { from_.put_back(own_); }

    [[nodiscard]] Workspace& operator*() const { return *own_; }
    [[nodiscard]] Workspace* operator->() const { return own_; }

   private:
    Workspaces& from_;
    Workspace* own_;
  };

  /// make() returns a std::unique_ptr to a new workspace.
  template <class Make>
  Workspaces(int count, const Make& make) {
    for (int number = 0; number < count; ++number) free_.push_back(all_.emplace_back(make()).get());
  }

 private:
  /// Waits until a workspace is free.
  [[nodiscard]] Workspace* take() {
    std::unique_lock lock{mutex_};
    returned_.wait(lock, [this] { return !free_.empty(); });
    Workspace* const own = free_.back();
    free_.pop_back();
    return own;
  }
  void put_back(Workspace* own) {
    {
      const std::lock_guard lock{mutex_};
      free_.push_back(own);  // allocates nothing: the list has had this size before
    }
    returned_.notify_one();
  }

  std::vector<std::unique_ptr<Workspace>> all_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<Workspace*> free_;
};

}  // namespace pdp::detail
