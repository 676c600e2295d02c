#pragma once

#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/join/membership.hpp>
#include <pdp/comm/os/blocked_signals.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/comm/wait_until.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::launch {

/// A client of munge (https://dun.github.io/munge), the authentication service of many clusters. Its daemon on each host encrypts bytes so
/// that only processes of one user can have them decrypted, and says which user had them encrypted.
///
/// The library is loaded when it is needed. The functions that are called are declared here as in munge.h.
class Munge {
 public:
  /// `socket`: the daemon's socket; empty: munge's default.
  explicit Munge(std::string socket) : socket_{std::move(socket)} {}

  /// Returns a credential that contains the secret, encrypted for processes of this user. Throws ConfigError if the daemon cannot make it
  /// before the deadline.
  [[nodiscard]] std::string encode(const comm::Secret& secret, comm::TimePoint deadline) const {
    const comm::Secret words = before(deadline, [socket = socket_, secret] {
      const Library library;
      const Context context{library, socket};
      context.set(Option::cipher, cipher_aes128);
      context.set(Option::lifetime, lifetime_maximum);
      context.set(Option::user, ::geteuid());
      char* credential = nullptr;
      const int error = library.encode(&credential, context.get(), secret.bytes().data(), as_int(secret.bytes().size()));
      const std::unique_ptr<char, void (*)(void*)> owner{credential, &std::free};
      if (error != 0 || credential == nullptr) context.fail("cannot encrypt the job's secret", error);
      return comm::Secret{credential};
    });
    return std::string{words.bytes()};
  }

  /// Returns the secret in a credential. Throws ConfigError if the credential was not made by and for processes of this user, is more than
  /// an hour old, or is not decrypted before the deadline.
  [[nodiscard]] comm::Secret decode(const std::string& credential, comm::TimePoint deadline) const {
    return before(deadline, [socket = socket_, credential] {
      const Library library;
      const Context context{library, socket};
      void* bytes = nullptr;
      int size = 0;
      uid_t user = 0;
      gid_t group = 0;
      const int error = library.decode(credential.c_str(), context.get(), &bytes, &size, &user, &group);
      comm::Secret secret{bytes != nullptr ? std::string(static_cast<const char*>(bytes), as_size(size)) : std::string{}};
      if (bytes != nullptr) ::explicit_bzero(bytes, as_size(size));
      std::free(bytes);
      // All ranks of a host decrypt the same credential, so munge reports a replay. That is harmless: a credential proves nothing by
      // itself. Its sender must also know the secret in it.
      if (error != 0 && error != replayed) context.fail("cannot decrypt the job store's credential", error);
      if (user != ::geteuid())
        throw ConfigError{text("the job's store belongs to user id ", user, ", according to munge, but this process runs as ", ::geteuid(),
                               "; are there two jobs at one address and port?")};
      return secret;
    });
  }

 private:
  static constexpr int cipher_aes128 = 4, lifetime_maximum = -1, replayed = 17;
  enum class Option : int { cipher = 0, lifetime = 4, socket = 8, user = 9 };

  struct Library {
    Library() : handle{::dlopen(name, RTLD_NOW | RTLD_LOCAL)} {
      if (handle == nullptr)
        throw ConfigError{
            text("munge is needed to prove who may join this job, but its library cannot be loaded (", ::dlerror(), ")", ways_out)};
      find("munge_ctx_create", create);
      find("munge_ctx_destroy", destroy);
      find("munge_ctx_set", set);
      find("munge_ctx_strerror", context_error);
      find("munge_strerror", error);
      find("munge_encode", encode);
      find("munge_decode", decode);
    }  // the library stays loaded

    template <class Function>
    void find(const char* symbol, Function*& function) {
      function = reinterpret_cast<Function*>(::dlsym(handle, symbol));
      if (function == nullptr) throw ConfigError{text(name, " has no function ", symbol, "; it must be munge 0.5", ways_out)};
    }

    static constexpr const char* name = "libmunge.so.2";
    void* handle;
    void* (*create)() = nullptr;
    void (*destroy)(void*) = nullptr;
    int (*set)(void*, int, ...) = nullptr;
    const char* (*context_error)(void*) = nullptr;
    const char* (*error)(int) = nullptr;
    int (*encode)(char**, void*, const void*, int) = nullptr;
    int (*decode)(const char*, void*, void**, int*, uid_t*, gid_t*) = nullptr;
  };

  class Context {
   public:
    Context(const Library& library, const std::string& socket) : library_{library}, context_{library.create()} {
      if (context_ == nullptr) throw ConfigError{"munge is out of memory"};
      if (!socket.empty() && library.set(context_, as_int(Option::socket), socket.c_str()) != 0) {
        library.destroy(context_);
        throw ConfigError{text("munge rejects the socket ", in_quotes(socket), " (PDP_MUNGE_SOCKET)")};
      }
    }
    Context(Context&&) = delete;
    ~Context() { library_.destroy(context_); }

    [[nodiscard]] void* get() const { return context_; }
    template <class Value>
    void set(Option option, Value value) const {
      if (const int error = library_.set(context_, as_int(option), value); error != 0) fail("rejects an option", error);
    }
    [[noreturn]] void fail(const char* what, int error) const {
      const char* words = library_.context_error(context_);
      throw ConfigError{text("munge ", what, ": ", words != nullptr ? words : library_.error(error), ways_out)};
    }

   private:
    const Library& library_;
    void* context_;
  };

  static constexpr const char* ways_out =
      "; make sure that munged runs on every host (PDP_MUNGE_SOCKET selects another socket), or set the same secret on all ranks "
      "(PDP_SECRET_FILE)";

  struct Call {
    std::mutex mutex;
    std::condition_variable over;
    std::optional<comm::Secret> bytes;
    std::string trouble;
  };

  /// Calls `function` on another thread, since the library may wait for the daemon without limit. Throws ConfigError if the call does not
  /// return before the deadline. The thread is then left behind; it owns everything that it uses.
  template <class Function>
  static comm::Secret before(comm::TimePoint deadline, Function function) {
    const auto call = std::make_shared<Call>();
    start([call, function = std::move(function)] {
      comm::Secret bytes;
      std::string trouble;
      try {
        bytes = function();
      } catch (const std::exception& error) {
        trouble = error.what();
      }
      const std::lock_guard lock{call->mutex};
      call->bytes = std::move(bytes);
      call->trouble = std::move(trouble);
      call->over.notify_all();
    });
    std::unique_lock lock{call->mutex};
    if (!comm::wait_until(call->over, lock, deadline, [&] { return call->bytes.has_value(); }))
      throw ConfigError{text("the munge daemon did not answer before the deadline for the start (PDP_TIMEOUT)", ways_out)};
    if (!call->trouble.empty()) throw ConfigError{call->trouble};
    return *call->bytes;
  }

  template <class Function>
  static void start(Function function) {
    const comm::BlockedSignals blocked;
    try {
      std::thread{std::move(function)}.detach();
    } catch (const std::system_error& error) {
      throw ConfigError{text("cannot start a thread that calls munge: ", comm::describe_system_error(error.code().value()))};
    }
  }

  std::string socket_;
};

}  // namespace pdp::launch
