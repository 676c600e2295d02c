#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/message/member.hpp>

namespace pdp::comm {

/// The transport of a world of one rank: there is nobody to talk to.
class SelfTransport {
 public:
  [[nodiscard]] int rank() const { return 0; }
  [[nodiscard]] int size() const { return 1; }
  void post(SendRequest&) {}
  void post(ReceiveRequest&) {}
  bool progress() {
    if (failure_) failure_->raise();
    return false;
  }
  void wait(TimePoint until) { std::this_thread::sleep_until(std::min(until, Clock::now() + Clock::slice)); }
  void fail(Failure failure) {
    if (!failure_) failure_ = std::make_unique<Failure>(std::move(failure));
  }
  [[nodiscard]] const Failure* failure() const { return failure_.get(); }

 private:
  std::unique_ptr<Failure> failure_;
};
static_assert(Transport<SelfTransport>);

/// One rank alone. Every collective is a copy, or nothing.
class Self : public BasicCommunicator<Member<SelfTransport>> {
 public:
  /// What a command line calls it: --comm self.
  static constexpr std::string_view name{"self"};
  static constexpr bool alone = true;

  Self() : BasicCommunicator{Member{SelfTransport{}}} {}
  Self(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Self split(int color, int key) { return BasicCommunicator::split(color, key); }
};

static_assert(Communicator<Self> && HasReduceScatter<Self> && FailsFast<Self> && Alone<Self>);

}  // namespace pdp::comm
