#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/clock.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/member.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// The transport of a world of one rank. It carries no messages.
class SelfTransport {
 public:
  [[nodiscard]] int rank() const { return 0; }
  [[nodiscard]] int size() const { return 1; }
  void post(SendRequest&) {}
  void post(ReceiveRequest&) {}
  bool progress();
  void wait(TimePoint until);
  void fail(Failure failure);
  [[nodiscard]] const Failure* failure() const { return failure_.get(); }

 private:
  std::unique_ptr<Failure> failure_;
};
static_assert(Transport<SelfTransport>);

#ifdef PDP_SEPARATE_CORE
extern template class Member<SelfTransport>;
#endif

/// A world of one rank. A collective copies its input to its output, or does nothing if both are the same memory.
class Self : public BasicCommunicator<Member<SelfTransport>> {
 public:
  /// The name for the command line: --comm self.
  static constexpr std::string_view name{"self"};
  static constexpr bool alone = true;

  Self();
  Self(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Self split(int color, int key) { return BasicCommunicator::split(color, key); }
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/source/self.hpp>
#endif
