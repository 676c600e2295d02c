// The part of docs/how-to/read_data.md about .npz files: read_npz

#include <pdp/comm/hierarchical.hpp>
#include <pdp/data/npz.hpp>
#include <pdp/pdp.hpp>

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) {
    // [read]
    const auto houses =
        pdp::data::read_npz<float>("examples/data/houses/houses.npz");
    // [read]
    pdp::print(world, "{} houses of {} values", houses.size(),
               houses.sample_shape().elements());
  });
}
