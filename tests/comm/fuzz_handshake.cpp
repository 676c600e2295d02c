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

/// In pieces, whose lengths the bytes say themselves.
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

/// Whatever somebody says who does not know the secret, no server lets it in and no client believes it.
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
    // The marks of the job are no secret, so that they do not keep the fuzzer at the door.
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
