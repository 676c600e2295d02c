#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <pdp/comm/join/membership.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/start/environment.hpp>
#include <pdp/launch/start/launcher_variables.hpp>
#include <pdp/launch/start/slurm.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

/// The settings of the environment that decide who may join a job.
struct Access {
  std::optional<comm::Secret> secret{};
  bool insecure = false;       // PDP_INSECURE=1: any process that reaches the ports may join
  bool slurm = false;          // this is a Slurm job, so munge is expected to run
  bool together = false;       // the launcher says that all ranks are on this host
  std::string munge_socket{};  // PDP_MUNGE_SOCKET; empty: munge's default
  comm::Job job{};

  /// Returns whether ranks on other hosts could prove that they belong to the job (see choose_grounds).
  [[nodiscard]] bool others_may_join() const { return secret || insecure || slurm || !munge_socket.empty(); }

  static constexpr std::size_t shortest_secret = 16;  // bytes; a shorter secret could be guessed from a recorded handshake
  static constexpr std::size_t longest_secret = 4096;

  /// Reads the settings for a world of `size` ranks. The secret comes from PDP_SECRET_FILE or PDP_SECRET. Throws UsageError if both are
  /// set, or if a setting is invalid.
  static Access from(const Variables& variable, int size);
};

namespace detail {

inline constexpr const char* how_to_make_a_secret = "(umask 077; head -c 32 /dev/urandom | base64 > FILE)";

inline comm::Secret checked_secret(std::string bytes, std::string_view from) {
  while (!bytes.empty() && (bytes.back() == '\n' || bytes.back() == '\r')) bytes.pop_back();
  const std::size_t size = bytes.size();
  comm::Secret secret{std::move(bytes)};
  if (size < Access::shortest_secret || size > Access::longest_secret)
    throw UsageError{text(from, " holds a secret of ", size, " bytes; it must have from ", Access::shortest_secret, " to ",
                          Access::longest_secret, ", and be random: ", how_to_make_a_secret)};
  return secret;
}

/// Reads the secret in a file. Throws UsageError if the file cannot be read, is not a regular file, belongs to another user, or is
/// accessible to other users, and if the secret has the wrong size.
inline comm::Secret read_secret(const std::string& path) {
  const comm::Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  const auto refuse = [&](const auto&... why) { throw UsageError{text("PDP_SECRET_FILE, ", in_quotes(path), ", ", why...)}; };
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0)
    refuse("cannot be read: ", std::strerror(errno),
           "; it must be a file that holds the job's secret, on every host: ", how_to_make_a_secret);
  if (!S_ISREG(about.st_mode)) refuse("is not a regular file");
  if (about.st_uid != ::geteuid())
    refuse("belongs to user id ", about.st_uid, ", but this process runs as ", ::geteuid(), "; its owner could join the job");
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) refuse("can be read or written by other users; make it your own (chmod 600)");
  std::string bytes(Access::longest_secret + 2, '\0');
  const ssize_t read = ::read(file.get(), bytes.data(), bytes.size());
  if (read < 0) refuse("cannot be read: ", std::strerror(errno));
  bytes.resize(as_size(read));
  return checked_secret(std::move(bytes), text("PDP_SECRET_FILE, ", in_quotes(path), ","));
}

/// Returns the name of the job: PDP_JOB if it is set. Otherwise it is Slurm's job number, if any, followed by the step number under srun,
/// or by the name that another launcher gives the job. A name for mpirun or torchrun has no step number, since their ranks may be in
/// several steps.
inline std::string job_name(const Variables& variable) {
  if (const char* name = given(variable, "PDP_JOB")) return name;
  const char* slurm = given(variable, slurm_job(variable));
  const std::optional<Starter> starter = find_starter(variable);
  std::string of_launcher = starter ? starter->job : std::string{};
  if (slurm == nullptr) return of_launcher;
  if (starter && std::string_view{starter->rank} == "SLURM_PROCID") return text(slurm, '.', variable("SLURM_STEP_ID"));
  return of_launcher.empty() ? slurm : text(slurm, ' ', of_launcher);
}

/// Returns the name of this attempt at the job: PDP_ATTEMPT if it is set, else how often Slurm has requeued the job and torchrun has
/// restarted its ranks. In a job of several torchruns, each counts only the failures of its own ranks, so the counts differ and are
/// ignored. This is safe: they start ranks only after all of them have ended the ranks of the previous attempt.
inline std::string attempt_name(const Variables& variable) {
  if (const char* name = given(variable, "PDP_ATTEMPT")) return name;
  const char* slurm = given(variable, "SLURM_RESTART_COUNT");
  const char* nodes = given(variable, "GROUP_WORLD_SIZE");
  const char* torch = nodes != nullptr && std::string_view{nodes} == "1" ? given(variable, "TORCHELASTIC_RESTART_COUNT") : nullptr;
  std::string name;
  if (slurm != nullptr && std::string_view{slurm} != "0") name = slurm;  // the first attempt: 0 or unset, depending on the version of Slurm
  if (torch != nullptr) name += text('/', torch);
  return name;
}

/// Returns whether the launcher says that all ranks of the world are on this host.
inline bool all_here(const Variables& variable, int size) {
  const std::string all = std::to_string(size);
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (const char* here = given(variable, name)) return here == all;
  const std::optional<Starter> starter = find_starter(variable);
  return starter && starter->all_here && starter->all_here(variable, size);
}

}  // namespace detail

inline Access Access::from(const Variables& variable, int size) {
  Access access;
  const char* file = detail::given(variable, "PDP_SECRET_FILE");
  const char* words = detail::given(variable, "PDP_SECRET");
  if (file != nullptr && words != nullptr)
    throw UsageError{"PDP_SECRET_FILE and PDP_SECRET are both set; unset one of them, the same on all ranks"};
  if (file != nullptr) access.secret = detail::read_secret(file);
  if (words != nullptr) access.secret = detail::checked_secret(words, "PDP_SECRET");
  if (const char* insecure = detail::given(variable, "PDP_INSECURE")) {
    access.insecure = std::string_view{insecure} == "1";
    if (!access.insecure && std::string_view{insecure} != "0")
      throw UsageError{
          text("PDP_INSECURE must be 1 (anyone who reaches a job's ports can join it), or 0 or unset; found ", in_quotes(insecure))};
  }
  if (const char* socket = detail::given(variable, "PDP_MUNGE_SOCKET")) access.munge_socket = socket;
  access.slurm = detail::given(variable, "SLURM_JOB_ID") != nullptr;
  access.together = detail::all_here(variable, size);
  access.job = {detail::job_name(variable), detail::attempt_name(variable)};
  return access;
}

}  // namespace pdp::launch
