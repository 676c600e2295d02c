#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#ifdef __x86_64__

/// The names that a file system has written before a power cut, apart from those of synced folders.
enum class Written { none, removals, all };

/// A model of what a folder holds after a power cut. A file keeps its bytes only if it was synced after it was last written. A folder keeps
/// the names that it had when it was last synced. A file system may have written later changes of names, all of them or only some, but not
/// the bytes behind them. The order of writes and syncs comes from the system calls of the one process that changes the folder.
class PowerCut {
 public:
  /// All that `folder` holds now is on the disk. `kept` is a folder for files that the process removes; it may exist.
  PowerCut(std::filesystem::path folder, std::filesystem::path kept) : folder_{std::move(folder)}, kept_{std::move(kept)} {
    std::filesystem::remove_all(kept_);
    std::filesystem::create_directories(kept_);
    sync_folder(folder_);
    for (const auto& entry : std::filesystem::recursive_directory_iterator{folder_}) {
      if (entry.is_directory() && !entry.is_symlink())
        sync_folder(entry.path());
      else if (entry.is_regular_file() && !entry.is_symlink())
        synced_.insert(inode(entry.path()));
    }
  }

  /// Takes note of a system call that has ended.
  void observe(pid_t process, const user_regs_struct& call) {
    if (static_cast<std::int64_t>(call.rax) < 0) return;
    const bool writes = call.orig_rax == SYS_write || call.orig_rax == SYS_writev || call.orig_rax == SYS_pwrite64 ||
                        call.orig_rax == SYS_pwritev || call.orig_rax == SYS_ftruncate || call.orig_rax == SYS_fallocate;
    const bool syncs = call.orig_rax == SYS_fsync || call.orig_rax == SYS_fdatasync;
    if (!writes && !syncs) return;
    const std::filesystem::path opened = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(call.rdi);
    if (writes) {
      synced_.erase(inode(opened));
    } else if (std::filesystem::is_directory(opened)) {
      sync_folder(std::filesystem::read_symlink(opened));
    } else {
      synced_.insert(inode(opened));
    }
  }

  /// Leaves in the folder only what a disk would hold.
  void cut(Written written) {
    if (written != Written::all) {
      const std::filesystem::path begin = kept_ / "folder";
      restore(inode(folder_), begin, written);
      std::filesystem::remove_all(folder_);
      std::filesystem::rename(begin, folder_);
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator{folder_})
      if (entry.is_regular_file() && !entry.is_symlink() && !synced_.contains(inode(entry.path())))
        std::filesystem::resize_file(entry.path(), 0);
  }

 private:
  using Inode = ino_t;

  static Inode inode(const std::filesystem::path& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) throw std::system_error{errno, std::system_category(), path};
    return found.st_ino;
  }

  /// Notes the names in a folder, and keeps its files and symbolic links by further names.
  void sync_folder(const std::filesystem::path& path) {
    auto& names = names_[inode(path)];
    names.clear();
    for (const auto& entry : std::filesystem::directory_iterator{path}) {
      const std::string name = entry.path().filename();
      if (entry.is_symlink()) {
        names[name] = {0, std::filesystem::read_symlink(entry.path())};
        continue;
      }
      const Inode number = inode(entry.path());
      names[name] = {number, {}};
      if (entry.is_directory())
        names_[number];  // a new folder has no names before it is synced itself
      else if (const auto link = kept_ / std::to_string(number); !std::filesystem::exists(link))
        std::filesystem::create_hard_link(entry.path(), link);
    }
  }

  /// Makes a folder with the names of its last sync; without the files that were removed since, if the removals are written.
  void restore(Inode folder, const std::filesystem::path& to, Written written) {
    std::filesystem::create_directory(to);
    for (const auto& [name, entry] : names_.at(folder)) {
      const auto& [number, target] = entry;
      if (number == 0) {
        std::filesystem::create_symlink(target, to / name);
      } else if (names_.contains(number)) {
        restore(number, to / name, written);
      } else {
        const std::filesystem::path file = kept_ / std::to_string(number);
        if (written == Written::none || std::filesystem::hard_link_count(file) > 1) std::filesystem::create_hard_link(file, to / name);
      }
    }
  }

  std::filesystem::path folder_, kept_;
  std::set<Inode> synced_;
  std::map<Inode, std::map<std::string, std::pair<Inode, std::filesystem::path>>> names_;  // a folder's names; 0: a symbolic link
};

#endif
