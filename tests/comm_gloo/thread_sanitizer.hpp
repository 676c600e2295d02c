// What ThreadSanitizer must know of Gloo, which is not built with it: included by one source of each program.
#pragma once

/// Gloo keeps its own thread from a buffer that is destroyed by a counter that the sanitizer does not see. What is behind that counter is
/// the buffer itself, the memory of the world's last words, and the scratch memory of Gloo's collectives, which is an array.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_suppressions() {
  return "race:gloo::transport::tcp::UnboundBuffer::~UnboundBuffer\n"
         "race:std::default_delete<gloo::transport::UnboundBuffer>\n"
         "race:pdp::comm::gloo::World::~World\n"
         "race:operator delete[]\n";
}
