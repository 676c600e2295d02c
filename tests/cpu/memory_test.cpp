#include <pdp/core/error.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/cpu/memory.hpp>

#include "catch.hpp"
#include "support.hpp"

TEST_CASE("allocate on a CPU throws DeviceError with the numbers of bytes if there is too little memory", "[cpu][bad input]") {
  if (PDP_TEST_SANITIZED) return;  // a sanitizer ends the program
  const auto refusal = [](const auto& call) { return support::message_of<pdp::DeviceError>(call).value(); };
  const pdp::Index too_many = pdp::Index{1} << 50;
  CHECK_THAT(refusal([&] { static_cast<void>(allocate<float>(pdp::cpu::Cpu{}, too_many)); }),
             StartsWith("this machine cannot allocate 4503599627370496 bytes for one array; it has ") &&
                 EndsWith(" bytes of memory; use a smaller batch, or spread the model over more machines"));
  CHECK_THAT(refusal([&] { static_cast<void>(allocate<double>(pdp::cpu::Cpu{}, too_many)); }), Contains("allocate 9007199254740992 bytes"));
}
