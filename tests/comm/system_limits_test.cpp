#include <sys/resource.h>

#include <cerrno>
#include <string>

#include <pdp/comm/os/system_limits.hpp>

#include "catch.hpp"

namespace {

/// Sets the soft limit of a resource during its lifetime. Depending on the C library, a resource is an int or an enumeration.
template <class Resource>
class SoftLimit {
 public:
  SoftLimit(Resource resource, rlim_t limit) : resource_{resource} {
    if (::getrlimit(resource_, &before_) != 0) return;
    const rlimit changed{limit, before_.rlim_max};
    is_set_ = ::setrlimit(resource_, &changed) == 0;
  }
  SoftLimit(SoftLimit&&) = delete;
  ~SoftLimit() {
    if (is_set_) ::setrlimit(resource_, &before_);
  }
  explicit operator bool() const { return is_set_; }

 private:
  Resource resource_;
  rlimit before_{};
  bool is_set_ = false;
};

}  // namespace

TEST_CASE("describe_system_error shows the soft limit if processes or memory run out", "[comm][system_limits]") {
  const rlim_t bytes = rlim_t{1} << 47, processes = 65'432;  // more than a test uses
  if (const SoftLimit memory{RLIMIT_AS, bytes})
    CHECK_THAT(pdp::comm::describe_system_error(ENOMEM), Contains(pdp::text("may have ", bytes, " bytes of address space")));
  if (const SoftLimit users{RLIMIT_NPROC, processes})
    CHECK_THAT(pdp::comm::describe_system_error(EAGAIN), Contains("may have 65432 processes and threads"));
}

TEST_CASE("describe_system_error shows the hard limit if file descriptors run out", "[comm][system_limits]") {
  rlimit files{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &files) == 0);
  if (files.rlim_max == RLIM_INFINITY) return;
  CHECK_THAT(pdp::comm::describe_system_error(EMFILE), Contains(pdp::text("may have ", files.rlim_max, " open files")));
}
