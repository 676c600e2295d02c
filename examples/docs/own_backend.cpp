// The program of docs/how-to/extend.md with a communicator of its own: ranks
// that are threads exchange messages through queues.

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <pdp/comm/message/member.hpp>
#include <pdp/comm/message/source/member.hpp>
#include <pdp/pdp.hpp>
#include <pdp/testing/ranks.hpp>

namespace comm = pdp::comm;

// [state]
/// A message on its way: its sender, its envelope and a copy of its bytes.
struct Message {
  int from = 0;
  comm::Envelope envelope;
  std::vector<std::byte> bytes;
};

/// The state that all ranks of a world share.
struct Queues {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t changes = 0;
  std::vector<std::deque<Message>> to;  // [rank]: messages for it
  std::optional<comm::Failure> failure;
};
// [state]

// [transport]
/// Moves messages between threads, through a queue for each rank.
class QueueTransport {
 public:
  QueueTransport(std::shared_ptr<Queues> queues, int rank)
      : queues_{std::move(queues)}, rank_{rank} {}

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return pdp::as_int(queues_->to.size()); }

  void post(comm::SendRequest& send) {
    const std::lock_guard lock{queues_->mutex};
    queues_->to[pdp::as_size(send.peer)].push_back(
        {rank_, send.envelope, {send.data, send.data + send.envelope.bytes}});
    send.done = true;  // the bytes have been copied
    notify();
  }
  void post(comm::ReceiveRequest& receive) {
    receive.done = false;
    receives_.push_back(&receive);
  }

  bool progress() {
    const std::lock_guard lock{queues_->mutex};
    seen_ = queues_->changes;
    check();
    return std::erase_if(receives_, [this](comm::ReceiveRequest* receive) {
             return take(*receive);
           }) > 0;
  }
  void wait(comm::TimePoint until) {
    std::unique_lock lock{queues_->mutex};
    const auto time = std::min<comm::Duration>(until - comm::Clock::now(),
                                               comm::Clock::slice);
    queues_->changed.wait_for(lock, time,
                              [this] { return queues_->changes != seen_; });
    check();
  }

  void fail(comm::Failure failure) {
    const std::lock_guard lock{queues_->mutex};
    set(std::move(failure));
  }
  [[nodiscard]] const comm::Failure* failure() const {
    const std::lock_guard lock{queues_->mutex};
    return queues_->failure ? &*queues_->failure : nullptr;
  }

 private:
  // The mutex is locked in all functions below.
  void notify() {
    ++queues_->changes;
    queues_->changed.notify_all();
  }
  void set(comm::Failure failure) {
    if (!queues_->failure) queues_->failure = std::move(failure);
    notify();
  }
  void check() const {
    if (queues_->failure) queues_->failure->raise();
  }

  /// Takes the first message for a receive. Returns whether there is one.
  bool take(comm::ReceiveRequest& receive) {
    auto& messages = queues_->to[pdp::as_size(rank_)];
    const auto found = std::ranges::find_if(messages, [&](const Message& each) {
      return each.from == receive.peer &&
             each.envelope.channel == receive.envelope.channel &&
             each.envelope.tag == receive.envelope.tag;
    });
    if (found == messages.end()) return false;
    if (found->envelope != receive.envelope) {
      set(comm::mismatch(receive.envelope, rank_, found->envelope,
                         found->from));
      check();
    }
    const auto& bytes = found->bytes;
    if (receive.consume != nullptr)
      receive.consume(receive.data, bytes.data(), bytes.size());
    else if (!bytes.empty())
      std::memcpy(receive.data, bytes.data(), bytes.size());
    receive.done = true;
    messages.erase(found);
    return true;
  }

  std::shared_ptr<Queues> queues_;
  int rank_;
  std::uint64_t seen_ = 0;  // changes before the last progress()
  std::vector<comm::ReceiveRequest*> receives_;
};

static_assert(comm::Transport<QueueTransport>);
// [transport]

// [communicator]
/// A communicator over QueueTransport.
class Queued : public comm::BasicCommunicator<comm::Member<QueueTransport>> {
 public:
  static constexpr std::string_view name{"queued"};

  explicit Queued(QueueTransport transport)
      : BasicCommunicator{comm::Member{std::move(transport)}} {}
  Queued(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Queued split(int color, int key) {
    return BasicCommunicator::split(color, key);
  }

  /// Makes all ranks of a new world. Move each to a thread of its own.
  static std::vector<Queued> world(int size) {
    const auto queues = std::make_shared<Queues>();
    queues->to.resize(pdp::as_size(size));
    std::vector<Queued> ranks;
    for (int rank = 0; rank < size; ++rank)
      ranks.emplace_back(QueueTransport{queues, rank});
    return ranks;
  }
};

static_assert(comm::Communicator<Queued>);
// [communicator]

// [main]
namespace nn = pdp::nn;

constexpr pdp::Task line{nn::Sequential{nn::Linear{1, 1}},
                         pdp::loss::MeanSquaredError{},
                         pdp::optim::Sgd{.lr = 0.5f}};

/// Fits a line on three ranks. Returns its slope and its intercept.
template <class Comm>
std::vector<float> fit_line() {
  const auto of_ranks = pdp::testing::ranks<Comm>(3, [](Comm& world) {
    const std::vector<float> x{0.0f, 0.2f, 0.4f, 0.6f, 0.8f, 1.0f};
    const std::vector<float> y{1.0f, 1.4f, 1.8f, 2.2f, 2.6f, 3.0f};
    const pdp::data::InMemory<float> points{pdp::Shape{1}, x, y};
    pdp::Trainer trainer{world,
                         pdp::strategy::Zero{.stage = 3},
                         line,
                         {.global_batch = 6, .seed = 1}};
    trainer.fit(points, {.epochs = 200}, [](const pdp::Epoch&) {});
    std::vector<float> found;
    for (const auto& tensor : trainer.parameters())
      found.push_back(tensor.values.front());
    return found;
  });
  return of_ranks.front();
}

int main() {
  const auto queued = fit_line<Queued>(), thread = fit_line<comm::Thread>();
  fmt::print("over Queued: y = {:.2f} x + {:.2f}\n", queued[0], queued[1]);
  fmt::print("over Thread: y = {:.2f} x + {:.2f}\n", thread[0], thread[1]);
}
// [main]
