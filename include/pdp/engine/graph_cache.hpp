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

/// The lists of instructions that a device has recorded, to be carried out again: those in which no other rank has a part, and, over a
/// communicator whose calls can be recorded (RecordsCalls), steps of all ranks. Borrows all that it is made of.
template <comm::Communicator C, class D>
class GraphCache {
 public:
  GraphCache(C& world, const D& device, InFlight<C, D>& in_flight) : world_{world}, device_{device}, in_flight_{in_flight} {}

  /// All ranks record their steps from now on.
  void record_together() { together_ = true; }
  /// Whether a step whose rows are split so, of which this rank has some, is recorded by all ranks.
  [[nodiscard]] bool admits(std::span<const Index> split, Index own_rows) {
    return together_ && splits_.admit(split, own_rows, world_.rank());
  }

  /// Carries out what run() does, or what it did when it was recorded. `what`: all that it depends on.
  template <class Run>
  void replay_alone(const std::array<Index, 4>& what, const Run& run) {
    replay(device_, alone_, what, run);
  }
  /// The same of a step in which other ranks have a part, which they record, too.
  template <class Run>
  void replay_together(std::span<const Index> split, const Run& run) {
    if constexpr (comm::RecordsCalls<C>) {
      world_.progress();  // a record asks nobody whether the world has ended
      try {
        replay(device_, together_by_split_, split, run);
      } catch (const CommunicationError&) {
        throw;
      } catch (const std::exception& error) {  // the other ranks have their record, which goes with no later one of this rank's
        world_.abort(text("rank ", world_.rank(), " could not carry out a step that all ranks record: ", error.what()));
        throw;
      }
    }
  }

  /// A step may be started while those before it are in flight, in which the device waits for other ranks. Whatever waits for the device
  /// then is waited for here, under the deadline: room for the batch on its way; all of it, where a step is no record yet, for which CUDA
  /// may want the device idle, or is never one, as a device takes so many launches only; and now and then, as it takes so many records
  /// only. `together`: the step is recorded by all ranks; has_room(): whether the batch can be given to the device at once.
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
  int ahead_ = 0;  // steps that were started since the device was idle for certain, and records of all ranks
};

}  // namespace pdp::engine
