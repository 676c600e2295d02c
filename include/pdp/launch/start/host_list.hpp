#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <pdp/core/error.hpp>

namespace pdp::launch {

/// Bounds of a list of hosts. No job has more hosts, and no network has longer names, so a list that exceeds them is damaged.
inline constexpr std::size_t most_hosts = 1'000'000;
inline constexpr std::size_t longest_host = 255;

/// A list of hosts in Slurm's compressed form, such as n[01-04,7],rack[1-2]node[01-03]-ib. Numbers keep the leading zeros of the first
/// number in their range. If a name has several brackets, the last counts fastest.
class HostList {
 public:
  /// Parses and checks the list, but does not expand it. Takes time and memory proportional to the length of the list. Borrows the list.
  ///
  /// Throws UsageError if the list is malformed, has more than most_hosts hosts, or has a name of more than longest_host letters.
  explicit HostList(std::string_view list) : list_{list} {
    do {
      take_name();
    } while (take(','));
  }

  /// Returns the number of hosts.
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Returns the first host.
  [[nodiscard]] std::string first() const {
    std::string host;
    for (std::size_t i = 0; i < names_.front().end; ++i) {
      host += pieces_[i].words;
      if (pieces_[i].end > pieces_[i].begin) append(host, ranges_[pieces_[i].begin], 0);
    }
    return host;
  }
  /// Returns all hosts, in the order of the list.
  [[nodiscard]] std::vector<std::string> all() const {
    std::vector<std::string> hosts;
    hosts.reserve(size_);
    std::string host;
    for (const Slice& name : names_) expand(name.begin, name.end, host, hosts);
    return hosts;
  }

 private:
  struct Slice {
    std::size_t begin, end;
  };
  struct Range {  // 01-12: first 1, last 12, width 2
    std::uint64_t first, last;
    std::size_t width;
  };
  struct Piece {  // of a name: letters, and the ranges in the brackets that follow, if any
    std::string_view words;
    std::size_t begin, end;
  };

  void take_name() {
    const std::size_t begin = pieces_.size();
    std::size_t length = 0, count = 1;
    do {
      const std::string_view words = take_while(in_name);
      const std::size_t first_range = ranges_.size();
      length += words.size();
      if (take('['))
        count = bounded(count * take_ranges(length));
      else if (words.empty())
        refuse("a letter or digit of a host's name or '['");
      pieces_.push_back({words, first_range, ranges_.size()});
      if (length > longest_host) throw UsageError{text("a host's name has at most ", longest_host, " letters; found one of ", length)};
    } while (at_ < list_.size() && list_[at_] != ',');
    names_.push_back({begin, pieces_.size()});
    size_ = bounded(size_ + count);
  }

  /// Parses the ranges after a '['. Returns how many numbers they have, and adds the length of the longest number to `length`.
  std::size_t take_ranges(std::size_t& length) {
    std::size_t count = 0, longest = 0;
    do {
      const std::string_view first = take_digits(), last = take('-') ? take_digits() : first;
      const Range range{number(first), number(last), first.size()};
      if (range.last < range.first)
        throw UsageError{text("a range in a list of hosts must count upwards; found ", range.first, '-', range.last)};
      // Check the difference first: unlike the count, it cannot overflow.
      if (range.last - range.first >= most_hosts) bounded(most_hosts + 1);
      count = bounded(count + (range.last - range.first) + 1);
      longest = std::max({longest, first.size(), last.size()});
      ranges_.push_back(range);
    } while (take(','));
    if (!take(']')) refuse("',' or ']'");
    length += longest;
    return count;
  }

  std::string_view take_digits() {
    const std::string_view digits = take_while([](char letter) { return letter >= '0' && letter <= '9'; });
    if (digits.empty()) refuse("a number");
    return digits;
  }

  template <class Accepts>
  std::string_view take_while(const Accepts& accepts) {
    const std::size_t begin = at_;
    while (at_ < list_.size() && accepts(list_[at_])) ++at_;
    return list_.substr(begin, at_ - begin);
  }
  bool take(char letter) {
    const bool there = at_ < list_.size() && list_[at_] == letter;
    if (there) ++at_;
    return there;
  }

  /// Unlike std::isalnum, does not depend on the locale.
  static bool in_name(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') || letter == '-' ||
           letter == '_' || letter == '.';
  }

  static std::uint64_t number(std::string_view digits) {
    std::uint64_t number = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc{})
      throw UsageError{text("a number in a list of hosts must be below 2^64; found ", digits.substr(0, 40))};
    return number;
  }

  static std::size_t bounded(std::size_t count) {
    if (count > most_hosts) throw UsageError{text("a list of hosts must have at most ", most_hosts, " hosts; found more")};
    return count;
  }

  [[noreturn]] void refuse(std::string_view expected) const {
    const std::size_t shown = std::min<std::size_t>(at_, 40);
    throw UsageError{text("a list of hosts, such as n[01-04,7],gpu3, must have ", expected,
                          at_ == 0 ? " at its start" : text(" after ", in_quotes(list_.substr(at_ - shown, shown))), "; found ",
                          at_ == list_.size() ? "its end" : in_quotes(list_.substr(at_, 1)))};
  }

  static void append(std::string& host, const Range& range, std::uint64_t offset) {
    const std::string digits = std::to_string(range.first + offset);
    if (digits.size() < range.width) host.append(range.width - digits.size(), '0');
    host += digits;
  }

  /// Recurses once a piece of the name. Each piece has at least one letter, so longest_host bounds the depth.
  void expand(std::size_t piece, std::size_t end, std::string& host, std::vector<std::string>& hosts) const {
    if (piece == end) {
      hosts.push_back(host);
      return;
    }
    const std::size_t before = host.size();
    host += pieces_[piece].words;
    const std::size_t length = host.size();
    if (pieces_[piece].begin == pieces_[piece].end) expand(piece + 1, end, host, hosts);
    for (std::size_t i = pieces_[piece].begin; i < pieces_[piece].end; ++i) {
      for (std::uint64_t offset = 0; offset <= ranges_[i].last - ranges_[i].first; ++offset) {
        append(host, ranges_[i], offset);
        expand(piece + 1, end, host, hosts);
        host.resize(length);
      }
    }
    host.resize(before);
  }

  std::string_view list_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  std::vector<Slice> names_;  // of pieces_, one for each name in the list
  std::vector<Piece> pieces_;
  std::vector<Range> ranges_;
};

/// Returns the first host of a list in Slurm's compressed form: n01 of n[01-04],gpu3. Throws UsageError as HostList does.
inline std::string first_host(std::string_view list) { return HostList{list}.first(); }

/// Returns all hosts in the order of the list. Throws UsageError as HostList does, before it allocates memory for the hosts.
inline std::vector<std::string> hosts(std::string_view list) { return HostList{list}.all(); }

}  // namespace pdp::launch
