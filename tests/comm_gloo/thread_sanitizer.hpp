// Suppressions of ThreadSanitizer for Gloo, which is not built with it. One source of each program includes this header.
#pragma once

/// Before a buffer is destroyed, Gloo synchronises with its own thread by a counter that the sanitizer does not see. The counter protects
/// the buffer, the memory of the world's last messages, and the scratch arrays of Gloo's collectives.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_suppressions() {
  return "race:gloo::transport::tcp::UnboundBuffer::~UnboundBuffer\n"
         "race:std::default_delete<gloo::transport::UnboundBuffer>\n"
         "race:pdp::comm::gloo::World::~World\n"
         "race:operator delete[]\n";
}
