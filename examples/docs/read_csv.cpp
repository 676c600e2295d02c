// The part of docs/how-to/read_data.md about CSV files: read_csv

#include <pdp/comm/hierarchical.hpp>
#include <pdp/data/csv.hpp>
#include <pdp/pdp.hpp>

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) {
    // [read]
    const auto houses = pdp::data::read_csv<float>(
        "examples/data/houses/houses.csv",
        {.inputs = {"area", "year", "distance"}, .targets = {"price"}});
    // [read]
    pdp::print(world, "{} houses of {} values", houses.size(),
               houses.sample_shape().elements());
  });
}
