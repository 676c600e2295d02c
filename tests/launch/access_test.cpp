#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <pdp/launch/access/access.hpp>
#include <pdp/launch/access/shared_secret.hpp>
#include <pdp/launch/access/voucher.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace access_test {

namespace launch = pdp::launch;
using launch::Access;
using launch::Grounds;
using support::message_of;

namespace {

using Variables = std::map<std::string, std::string>;

Access access(const Variables& variables, int size = 4) {
  return Access::from(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      size);
}
std::string refusal(const Variables& variables) {
  return message_of<pdp::UsageError>([&] { static_cast<void>(access(variables)); }).value_or("nothing was thrown");
}

/// A temporary file with the given content and mode.
struct File {
  std::string path = (std::filesystem::temp_directory_path() / pdp::text("pdp_secret_", ::getpid())).string();
  explicit File(const std::string& words, mode_t mode = 0600) {
    std::ofstream{path} << words;
    ::chmod(path.c_str(), mode);
  }
  File(File&&) = delete;
  ~File() { ::unlink(path.c_str()); }
};

const std::string secret = "sixteen bytes or more";

launch::Address at(const std::string& host) {
  std::string why;
  return launch::resolve(host, 1, why).at(0);
}

}  // namespace

TEST_CASE("Access::from reads the secret from PDP_SECRET_FILE or PDP_SECRET and rejects both together", "[launch][access]") {
  CHECK_FALSE(access({}).secret);
  CHECK(access({{"PDP_SECRET", secret}}).secret->bytes() == secret);
  const File file{secret + "\n"};
  CHECK(access({{"PDP_SECRET_FILE", file.path}}).secret->bytes() == secret);
  ::chmod(file.path.c_str(), 0400);
  CHECK(access({{"PDP_SECRET_FILE", file.path}}).secret->bytes() == secret);
  const std::string both = refusal({{"PDP_SECRET_FILE", file.path}, {"PDP_SECRET", secret}});
  CHECK_THAT(both, Contains("both set"));
}

TEST_CASE("Access::from rejects a PDP_SECRET_FILE that other users may access and suggests chmod 600", "[launch][access]") {
  const auto mode = static_cast<mode_t>(GENERATE(0644, 0640, 0604, 0620, 0602, 0610));
  const File file{secret, mode};
  const std::string words = refusal({{"PDP_SECRET_FILE", file.path}});
  CHECK_THAT(words, Contains(file.path) && Contains("can be read or written by other users") && Contains("chmod 600"));
  CHECK_THAT(words, !Contains(secret));
}

TEST_CASE("Access::from rejects a PDP_SECRET_FILE of another user", "[launch][access]") {
  const File file{secret};
  if (::chown(file.path.c_str(), 65534, 65534) != 0) {
    WARN("only root can give a file away");
    return;
  }
  CHECK_THAT(refusal({{"PDP_SECRET_FILE", file.path}}), Contains("belongs to user id 65534"));
}

TEST_CASE("Access::from rejects a missing, too short or too long secret without showing it", "[launch][access]") {
  CHECK_THAT(refusal({{"PDP_SECRET_FILE", "/no/such/file"}}), Contains("/no/such/file") && Contains("No such file"));
  CHECK_THAT(refusal({{"PDP_SECRET_FILE", "/tmp"}}), Contains("is not a regular file"));
  CHECK_THAT(refusal({{"PDP_SECRET_FILE", "/dev/zero"}}), Contains("is not a regular file"));
  CHECK_THAT(refusal({{"PDP_SECRET", "fifteen bytes.."}}), Contains("15 bytes") && Contains("from 16 to") && !Contains("fifteen"));
  const File empty{""};
  CHECK_THAT(refusal({{"PDP_SECRET_FILE", empty.path}}), Contains("0 bytes"));
  const File huge{std::string(100'000, 'x')};
  CHECK_THAT(refusal({{"PDP_SECRET_FILE", huge.path}}), Contains("to 4096"));
}

TEST_CASE("Access::from accepts only 0 and 1 for PDP_INSECURE", "[launch][access]") {
  CHECK_FALSE(access({}).insecure);
  CHECK_FALSE(access({{"PDP_INSECURE", "0"}}).insecure);
  CHECK(access({{"PDP_INSECURE", "1"}}).insecure);
  CHECK_THAT(refusal({{"PDP_INSECURE", "yes"}}), Contains("PDP_INSECURE must be 1") && Contains("'yes'"));
}

TEST_CASE("Access::from names job and attempt by variables that are equal on all ranks", "[launch][access]") {
  const auto job = [](const Variables& variables) {
    const auto found = access(variables).job;
    return found.name + "|" + found.attempt;
  };
  CHECK(job({}) == "|");
  CHECK(job({{"PDP_JOB", "mine"}, {"PDP_ATTEMPT", "3"}, {"SLURM_JOB_ID", "7"}, {"SLURM_RESTART_COUNT", "2"}}) == "mine|3");
  const Variables step{{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "5"}, {"SLURM_STEP_NODELIST", "n0"}};
  CHECK(job(step) == "7.5|");
  Variables inside = step;
  inside.insert({{"RANK", "0"}, {"WORLD_SIZE", "4"}});
  CHECK(job(inside) == "7|");  // the torchrun of each node may be a step of its own
  CHECK(job({{"SLURM_JOB_ID", "7"}, {"SLURM_RESTART_COUNT", "0"}}) == "7|");
  CHECK(job({{"SLURM_JOB_ID", "7"}, {"SLURM_RESTART_COUNT", "2"}}) == "7|2");
  CHECK(job({{"TORCHELASTIC_RESTART_COUNT", "1"}, {"GROUP_WORLD_SIZE", "1"}}) == "|/1");
  CHECK(job({{"TORCHELASTIC_RESTART_COUNT", "1"}, {"GROUP_WORLD_SIZE", "2"}}) == "|");  // the other torchrun may have counted 0 restarts
  CHECK(job({{"TORCHELASTIC_RESTART_COUNT", "1"}, {"GROUP_WORLD_SIZE", "1"}, {"SLURM_JOB_ID", "7"}, {"SLURM_RESTART_COUNT", "2"}}) ==
        "7|2/1");

  const Variables torchrun{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "5"}, {"TORCHELASTIC_RUN_ID", "run"}};
  CHECK(job(torchrun) == "torchrun run 5|");
  Variables in_slurm = torchrun;
  in_slurm.insert({{"SLURM_JOB_ID", "7"}});
  CHECK(job(in_slurm) == "7 torchrun run 5|");
  CHECK(job({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_MCA_ess_base_jobid", "41"}}) == "41|");
}

TEST_CASE("choose_grounds chooses from the variables and the store's address how ranks prove membership", "[launch][access]") {
  const auto grounds = [](const Variables& variables, const std::string& store) {
    return launch::choose_grounds(access(variables), at(store));
  };
  const std::string here = GENERATE(as<std::string>{}, "127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1");
  CHECK(grounds({}, here) == Grounds::this_host);
  CHECK(grounds({{"SLURM_JOB_ID", "7"}}, here) == Grounds::this_host);
  CHECK(grounds({{"PDP_INSECURE", "1"}}, here) == Grounds::open);
  CHECK(grounds({{"PDP_SECRET", secret}, {"PDP_INSECURE", "1"}}, here) == Grounds::secret);
  CHECK(grounds({{"PDP_MUNGE_SOCKET", "/socket"}}, here) == Grounds::munge);
  const std::string there = GENERATE(as<std::string>{}, "10.0.0.1", "192.0.2.7", "fe80::1", "2001:db8::1", "0.0.0.0", "::ffff:10.0.0.1");
  CHECK(grounds({{"SLURM_JOB_ID", "7"}}, there) == Grounds::munge);
  CHECK(grounds({{"PDP_MUNGE_SOCKET", "/socket"}}, there) == Grounds::munge);
  CHECK(grounds({{"PDP_SECRET", secret}, {"SLURM_JOB_ID", "7"}}, there) == Grounds::secret);
  CHECK(grounds({{"PDP_INSECURE", "1"}, {"SLURM_JOB_ID", "7"}}, there) == Grounds::open);
  CHECK(grounds({{"LOCAL_WORLD_SIZE", "4"}}, there) == Grounds::this_host);
  CHECK(grounds({{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}, there) == Grounds::this_host);
  CHECK(grounds({{"SLURM_JOB_ID", "7"},
                 {"SLURM_PROCID", "0"},
                 {"SLURM_STEP_ID", "5"},
                 {"SLURM_STEP_NODELIST", "n0"},
                 {"SLURM_STEP_NUM_NODES", "1"}},
                there) == Grounds::this_host);
  const Variables nothing = GENERATE(as<Variables>{}, Variables{}, Variables{{"LOCAL_WORLD_SIZE", "2"}}, Variables{{"PDP_INSECURE", "0"}});
  const auto words = message_of<pdp::UsageError>([&] { static_cast<void>(grounds(nothing, there)); });
  REQUIRE(words);
  CHECK_THAT(*words, Contains("PDP_SECRET_FILE") && Contains("Slurm") && Contains("munge") && Contains("PDP_INSECURE=1"));
}

TEST_CASE("obtain_secret rejects grounds that are weaker than those set for the rank", "[launch][access]") {
  const auto says = [](const Variables& variables, Grounds grounds, const std::string& credential = {}) {
    return message_of<pdp::ConfigError>([&] {
             static_cast<void>(launch::obtain_secret(access(variables), grounds, credential, "the store", pdp::comm::TimePoint::max()));
           })
        .value_or("nothing was thrown");
  };
  for (const Grounds weaker : {Grounds::open, Grounds::this_host, Grounds::munge})
    CHECK_THAT(says({{"PDP_SECRET", secret}}, weaker), Contains("this rank has a secret") && !Contains(secret));
  CHECK_THAT(says({}, Grounds::secret), Contains("the store requires a secret, but this rank has none"));
  CHECK_THAT(says({}, Grounds::open), Contains("PDP_INSECURE=1"));
  CHECK(says({{"PDP_INSECURE", "1"}}, Grounds::open) == "nothing was thrown");
  CHECK(says({{"PDP_SECRET", secret}}, Grounds::secret) == "nothing was thrown");
}

TEST_CASE("SharedSecret::read accepts only sealed memory of the right size that belongs to this user", "[launch][access]") {
  const std::string bytes(32, 's');
  const launch::SharedSecret shared{pdp::comm::Secret{bytes}};
  CHECK(launch::SharedSecret::read(shared.place(), 32).bytes() == bytes);
  const auto says = [](const std::string& place) {
    return message_of<pdp::ConfigError>([&] { static_cast<void>(launch::SharedSecret::read(place, 32)); }).value_or("nothing was thrown");
  };
  const auto place_of = [](int file) { return pdp::text(::getpid(), ' ', file); };
  for (const char* no_place : {"", "1", "a b", "1 2 3", "-1 3", "1 -3", "0 3", "99999999999999 1", "../../x 1"})
    CHECK_THAT(says(no_place), Contains("malformed location of its secret"));
  CHECK_THAT(says(place_of(99'999)), Contains("No such file"));
  const pdp::comm::Descriptor unsealed{::memfd_create("pdp secret", MFD_CLOEXEC)};
  REQUIRE(::write(unsealed.get(), bytes.data(), bytes.size()) == 32);
  REQUIRE(::fchmod(unsealed.get(), 0600) == 0);
  CHECK_THAT(says(place_of(unsealed.get())), Contains("it is not in memory that pdp created"));
  REQUIRE(::fchmod(unsealed.get(), 0644) == 0);
  CHECK_THAT(says(place_of(unsealed.get())), Contains("not a secret in this user's memory"));
  const File file{bytes};
  const pdp::comm::Descriptor open_file{::open(file.path.c_str(), O_RDONLY | O_CLOEXEC)};
  CHECK(says(place_of(open_file.get())) != "nothing was thrown");
  const launch::SharedSecret shorter{pdp::comm::Secret{std::string(31, 's')}};
  CHECK_THAT(says(shorter.place()), Contains("not a secret in this user's memory"));
  if (::geteuid() == 0) {  // only root can change the owner of a file
    const std::string place = shared.place();
    REQUIRE(::fchown(std::stoi(place.substr(place.find(' '))), 65534, 65534) == 0);
    CHECK_THAT(says(place), Contains("not a secret in this user's memory"));
  }
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const pdp::comm::Descriptor read_end{ends[0]}, write_end{ends[1]};
  CHECK_THAT(says(place_of(ends[0])), Contains("not a secret in this user's memory"));
}

TEST_CASE("SharedSecret::read accepts a secret whose memory has more seals than pdp sets", "[launch][access]") {
  const std::string bytes(32, 's');
  const pdp::comm::Descriptor file{::memfd_create("pdp secret", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  REQUIRE(::write(file.get(), bytes.data(), bytes.size()) == 32);
  REQUIRE(::fchmod(file.get(), 0400) == 0);
  // A kernel with vm.memfd_noexec adds F_SEAL_EXEC. F_SEAL_FUTURE_WRITE stands for it here, since every kernel in use knows that one.
  REQUIRE(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0);
  CHECK(launch::SharedSecret::read(pdp::text(::getpid(), ' ', file.get()), 32).bytes() == bytes);
}

TEST_CASE("create_memory_file makes memory that can be sealed, and cannot be executed if the kernel supports that", "[launch][access]") {
  const pdp::comm::Descriptor file = pdp::comm::create_memory_file("pdp test");
  REQUIRE(file);
  struct stat about {};
  REQUIRE(::fstat(file.get(), &about) == 0);
  const pdp::comm::Descriptor known{::memfd_create("pdp test", MFD_CLOEXEC | 0x8)};  // MFD_NOEXEC_SEAL
  if (known) CHECK((about.st_mode & 0111) == 0);
  CHECK(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
}

TEST_CASE("SharedSecret::read throws in a process of another user", "[launch][access]") {
  if (::geteuid() != 0) {
    WARN("only root can become another user");
    return;
  }
  const launch::SharedSecret shared{pdp::comm::Secret{std::string(32, 's')}};
  const std::string place = shared.place();
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(9);
    try {
      static_cast<void>(launch::SharedSecret::read(place, 32));
    } catch (const pdp::ConfigError& error) {
      ::_exit(std::string{error.what()}.find("Permission denied") != std::string::npos ? 3 : 4);
    }
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 3);
}

}  // namespace access_test
