#pragma once

#include <string>
#include <string_view>

#include <pdp/comm/join/handshake/client.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::handshake {

/// Describes two builds that are incompatible.
inline std::string explain_builds(const Build& own, int rank, const Build& theirs, std::string_view whom) {
  return text("rank ", rank, " runs ", describe(own), ", but ", whom, " runs ", describe(theirs),
              "; all ranks must run the same build of the program on machines of one kind");
}

/// Explains why a client was refused, or has left. `whom`: the server that the client has called: "rank 3", "the job's store at 10.0.0.1,
/// port 29500".
inline std::string explain(const Client& client, std::string_view whom) {
  const Self& self = client.self();
  const Greeting& greeting = client.greeting();
  switch (client.verdict()) {
    case Verdict::other_build:
      return explain_builds(self.build, self.rank, greeting.build, whom);
    case Verdict::other_format:
      return text(whom, " runs a version of pdp whose handshake differs from that of rank ", self.rank, ", pdp ", version,
                  "; all ranks must run the same build of the program");
    case Verdict::other_size:
      return text("rank ", self.rank, " was started in a world of ", self.size, " ranks, but ", whom, " is in one of ", greeting.size,
                  "; all ranks must be started with the same number of ranks");
    case Verdict::no_such_rank:
      return text(whom, " expects no rank ", self.rank, "; ranks count from 0");
    case Verdict::duplicate:
      return text("rank ", self.rank, " of this job has joined already; two processes were started as the same rank");
    case Verdict::other_job:
      return text(whom, " belongs to another job than rank ", self.rank,
                  "; if launchers name the job differently on some ranks, set PDP_JOB");
    case Verdict::other_attempt:
      return text(whom, " belongs to another attempt of this job than rank ", self.rank,
                  "; a process of an earlier attempt may still be running");
    case Verdict::unknown:
      return text(whom, " and rank ", self.rank,
                  " do not have the same secret; all ranks must be given the same one (PDP_SECRET_FILE or PDP_SECRET), or none");
    case Verdict::crossed:
      return text(whom, " is connecting to rank ", self.rank, " at the same time");
    case Verdict::stranger:
    case Verdict::welcome:
      break;
  }
  return text("the process that answers as ", whom, " does not run pdp");
}

}  // namespace pdp::comm::handshake
