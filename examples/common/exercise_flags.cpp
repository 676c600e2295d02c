#include "exercise_flags.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <functional>

#include <pdp/launch/start/environment.hpp>

#include "comm_flag.hpp"
#include "end.hpp"
#include "number_flag.hpp"

namespace examples {

namespace {

constexpr int natural_ranks = 2;
constexpr pdp::Index most_values = pdp::Index{1} << 30;  // of one matrix: 4 GiB. The product of two such numbers does not overflow.

/// Reads the command line, with the flags for ranks in addition to those that the program has. `check` throws where the flags do not fit
/// together.
void read(CLI::App& app, int argc, char** argv, pdp::launch::Options& launch, const std::function<void()>& check) {
  pdp::open_standard_streams();
  app.get_formatter()->column_width(44);
  add_number_flag(app, "--ranks,--world-size", launch.ranks, 1, pdp::launch::most_local_ranks,
                  pdp::text("start this many local processes (", natural_ranks, " if nobody says)"));
  add_number_flag(app, "--threads", launch.threads, 1, pdp::launch::most_local_ranks, "run this many ranks as threads of one process");
  add_comm_flag(app, launch);
  try {
    app.parse(argc, argv);
    if (!launch.ranks && !launch.threads && !pdp::launch::JobPlace::given(pdp::launch::environment)) launch.ranks = natural_ranks;
    launch.check();
    check();
  } catch (const CLI::Success& wanted) {
    end_after(app, wanted);
  } catch (const std::exception& error) {
    end_after(app, error);
  }
}

void check_size(char name, pdp::Index rows, pdp::Index cols) {
  if (rows * cols > most_values)
    throw pdp::UsageError{
        pdp::text("the matrix ", name, " would have ", rows, " x ", cols, " values; this program takes up to ", most_values)};
}

}  // namespace

pdp::launch::Options parse_ranks(int argc, char** argv, const std::string& description) {
  pdp::launch::Options launch;
  CLI::App app{description, argc > 0 ? argv[0] : ""};
  read(app, argc, argv, launch, [] {});
  return launch;
}

ProductFlags parse_product(int argc, char** argv, const std::string& description) {
  ProductFlags flags;
  CLI::App app{description, argc > 0 ? argv[0] : ""};
  add_number_flag(app, "--m", flags.m, pdp::Index{1}, most_values, "rows of A and of C");
  add_number_flag(app, "--n", flags.n, pdp::Index{1}, most_values, "columns of B and of C");
  add_number_flag(app, "--k", flags.k, pdp::Index{1}, most_values, "columns of A, rows of B");
  read(app, argc, argv, flags.launch, [&] {
    check_size('A', flags.m, flags.k);
    check_size('B', flags.k, flags.n);
    check_size('C', flags.m, flags.n);
  });
  return flags;
}

}  // namespace examples
