#include <pdp/core/error.hpp>
#include <pdp/launch/start/rendezvous_url.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Checks that RendezvousUrl::parse, for any input, throws UsageError or returns a complete URL. Writing that URL and parsing it again must
/// give an equal one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using pdp::launch::RendezvousUrl;
  try {
    const RendezvousUrl url = RendezvousUrl::parse("URL", std::string_view{reinterpret_cast<const char*>(bytes), size});
    std::string again = "env://";
    if (url.kind == RendezvousUrl::Kind::file) again = "file://" + url.folder;
    if (url.kind == RendezvousUrl::Kind::tcp) {
      const bool brackets = url.host.find(':') != std::string::npos;
      again = pdp::text("tcp://", brackets ? "[" : "", url.host, brackets ? "]" : "", ':', url.port);
      if (url.host.empty() || url.port == 0) std::abort();
    }
    const RendezvousUrl same = RendezvousUrl::parse("URL", again);
    if (same.kind != url.kind || same.host != url.host || same.port != url.port || same.folder != url.folder) std::abort();
  } catch (const pdp::UsageError&) {
  }
  return 0;
}
