#include <pdp/launch/place.hpp>
#include <pdp/launch/start/environment.hpp>

#include "command_line.hpp"
#include "flags.hpp"

namespace examples {

namespace {

constexpr pdp::Index most_values = pdp::Index{1} << 30;  // of one matrix: 4 GiB. The product of two such numbers does not overflow.

/// Reads the flags for ranks in addition to those that the command line has.
void read(CommandLine& line, int argc, char** argv, pdp::launch::Options& launch, const std::function<void()>& check) {
  constexpr int natural_ranks = 2;
  line.number("--ranks,--world-size", launch.ranks, 1, pdp::launch::most_local_ranks,
              pdp::text("start this many local processes (", natural_ranks, " if nobody says)"));
  line.threads(launch);
  line.read(words_of(argc, argv), [&] {
    if (!launch.ranks && !launch.threads && !pdp::launch::JobPlace::given(pdp::launch::environment)) launch.ranks = natural_ranks;
    launch.check();
    check();
  });
}

void check_size(char name, pdp::Index rows, pdp::Index cols) {
  if (rows * cols > most_values)
    throw pdp::UsageError{
        pdp::text("the matrix ", name, " would have ", rows, " x ", cols, " values; this program takes up to ", most_values)};
}

}  // namespace

pdp::launch::Options parse_ranks(int argc, char** argv, const std::string& description) {
  pdp::launch::Options launch;
  CommandLine line{argc, argv, description};
  read(line, argc, argv, launch, [] {});
  return launch;
}

ProductFlags parse_product(int argc, char** argv, const std::string& description) {
  ProductFlags flags;
  CommandLine line{argc, argv, description};
  line.number("--m", flags.m, pdp::Index{1}, most_values, "rows of A and of C");
  line.number("--n", flags.n, pdp::Index{1}, most_values, "columns of B and of C");
  line.number("--k", flags.k, pdp::Index{1}, most_values, "columns of A, rows of B");
  read(line, argc, argv, flags.launch, [&] {
    check_size('A', flags.m, flags.k);
    check_size('B', flags.k, flags.n);
    check_size('C', flags.m, flags.n);
  });
  return flags;
}

}  // namespace examples
