#include <signal.h>
#include <string.h>

#include <string>

#include <pdp/launch/process/signal_name.hpp>

#include "catch.hpp"

namespace signal_name_test {

using pdp::launch::signal_name;

TEST_CASE("signal_name knows every signal below the real-time signals", "[launch]") {
  CHECK(signal_name(SIGKILL) == "SIGKILL");
  CHECK(signal_name(SIGSEGV) == "SIGSEGV");
  for (int signal = 1; signal <= 31; ++signal) {
    CAPTURE(signal);
#ifdef __GLIBC__
    CHECK(signal_name(signal) == "SIG" + std::string{::sigabbrev_np(signal)});
#else
    CHECK(signal_name(signal).starts_with("SIG"));
#endif
  }
  CHECK(signal_name(0).empty());
  CHECK(signal_name(SIGRTMIN).empty());
  CHECK(signal_name(-1).empty());
}

}  // namespace signal_name_test
