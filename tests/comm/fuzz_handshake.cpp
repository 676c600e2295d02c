#include <pdp/comm/join/handshake/explain.hpp>
#include <pdp/comm/join/handshake/server.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

using namespace pdp::comm;
using namespace pdp::comm::handshake;

namespace {

/// Feeds the bytes in pieces. The first byte of each piece determines its length.
template <class End>
void hear(End& end, std::string_view bytes) {
  while (!bytes.empty() && !end.space().empty()) {
    const auto space = end.space();
    const std::size_t now = std::min({bytes.size(), space.size(), std::size_t{1} + static_cast<unsigned char>(bytes.front())});
    std::memcpy(space.data(), bytes.data(), now);
    bytes.remove_prefix(now);
    end.took(now);
  }
}

}  // namespace

/// Checks that no bytes from a peer without the secret make a server accept it or a client trust it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const Membership job{.secret = Secret{"sixteen bytes or more"}, .job = {.name = "42.0", .attempt = "1"}};
  const Purpose purpose = (bytes[0] & 1) != 0 ? Purpose::store : Purpose::data;
  const Key key{job, purpose};
  const std::string_view said{reinterpret_cast<const char*>(bytes) + 1, size - 1};
  if ((bytes[0] & 2) != 0) {
    Server server{Self::of(purpose, no_rank, 3, job.job), key, (bytes[0] & 4) != 0 ? Grounds::munge : Grounds::secret, "credential"};
    hear(server, said);
    if (server.stage() == Server::Stage::asked) std::abort();
    static_cast<void>(server.answer(server.verdict()));
  } else {
    // The marks of job and attempt are public. With the correct marks, the fuzzer reaches the later stages.
    Client client{Self::of(purpose, 1, 3, job.job), no_rank};
    std::string words{said};
    Greeting known;
    known.job = client.self().job;
    known.attempt = client.self().attempt;
    if (words.size() >= sizeof known) {
      std::memcpy(words.data() + offsetof(Greeting, job), known.job.data(), sizeof known.job);
      std::memcpy(words.data() + offsetof(Greeting, attempt), known.attempt.data(), sizeof known.attempt);
    }
    hear(client, words);
    if (client.stage() == Client::Stage::invited) {
      static_cast<void>(client.introduce(key));
      hear(client, std::string_view{words}.substr(std::min(words.size(), sizeof known)));
    }
    if (client.stage() == Client::Stage::welcome) std::abort();
    if (explain(client, "rank 0").empty()) std::abort();
  }
  return 0;
}
