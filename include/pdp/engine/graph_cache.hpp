#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/engine/in_flight.hpp>
#include <pdp/engine/recorded_splits.hpp>

namespace pdp::engine {

/// The lists of instructions that a device has recorded for replay. These are lists without calls to other ranks, and also steps with such
/// calls if the communicator's calls can be recorded (RecordsCalls). Borrows all arguments of the constructor.
template <comm::Communicator C, class D>
class GraphCache {
 public:
  GraphCache(C& world, const D& device, InFlight<C, D>& in_flight) : world_{world}, device_{device}, in_flight_{in_flight} {}

  /// Records steps with calls from now on, as all other ranks must, too.
  void record_together() { together_ = true; }
  /// Returns whether all ranks record a step with this split of the rows; see RecordedSplits. `own_rows`: the share of this rank.
  [[nodiscard]] bool admits(std::span<const Index> split, Index own_rows) {
    return together_ && splits_.admit(split, own_rows, world_.rank());
  }

  /// Executes run(), or replays its recording. `what`: everything that run() depends on.
  template <class Run>
  void replay_alone(const std::array<Index, 4>& what, const Run& run) {
    replay(device_, alone_, what, run);
  }
  /// Does the same for a step in which other ranks take part and which all of them record.
  template <class Run>
  void replay_together(std::span<const Index> split, const Run& run) {
    if constexpr (comm::RecordsCalls<C>) {
      world_.progress();  // a replay does not check whether the world has failed
      try {
        replay(device_, together_by_split_, split, run);
      } catch (const CommunicationError&) {
        throw;
      } catch (const std::exception& error) {  // the recordings of the other ranks match no later recording of this rank
        world_.abort(text("rank ", world_.rank(), " failed in a step that all ranks record: ", error.what()));
        throw;
      }
    }
  }

  /// Waits, under the deadline, for everything that could block the host while the next step starts. Earlier steps may still be in flight,
  /// and in these the device may wait for other ranks.
  ///
  /// - Always waits until the device can take the batch at once.
  /// - Waits for all device work if the step has no recording yet: CUDA may need an idle device to make one. Does the same if the step is
  ///   never recorded: a device queues a limited number of launches.
  /// - Waits for all device work before every 16th step in a row that is recorded, since a device queues a limited number of replays.
  ///
  /// `together`: all ranks record the step. has_room(): returns whether the device can take the batch at once.
  template <class HasRoom>
  void wait_for_room(std::span<const Index> split, bool together, const HasRoom& has_room) {
    bool is_recorded = false;
    if constexpr (comm::RecordsCalls<C>) is_recorded = together && together_by_split_.is_ready(split);
    if (!is_recorded || ++ahead_ >= most_ahead) {
      in_flight_.synchronise();
      ahead_ = 0;
    }
    in_flight_.wait_until([&] { return has_room() || device_.is_idle(); });
  }

 private:
  static constexpr int most_ahead = 16;

  C& world_;
  const D& device_;
  InFlight<C, D>& in_flight_;
  typename D::Recordings alone_;
  typename D::Recordings together_by_split_;
  RecordedSplits splits_;
  bool together_ = false;
  int ahead_ = 0;  // recorded steps started since the device was last known to be idle
};

}  // namespace pdp::engine
