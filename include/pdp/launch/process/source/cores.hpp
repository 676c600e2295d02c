#pragma once

/// Definitions for pdp/launch/process/cores.hpp; see pdp/core/separate_compilation.hpp.

#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/process/cores.hpp>

namespace pdp::launch {

PDP_INLINE std::string describe(const Cores& cores) {
  std::string words;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores)) continue;
    const std::size_t first = core;
    while (core + 1 < CPU_SETSIZE && CPU_ISSET(core + 1, &cores)) ++core;
    words += text(words.empty() ? "" : ",", first, core > first ? text('-', core) : "");
  }
  return words;
}

PDP_INLINE std::vector<Cores> openmp_places() {
  const auto find = [](const char* name, auto*& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(RTLD_DEFAULT, name));
    return function != nullptr;
  };
  int (*count_places)() = nullptr;
  int (*count_cores)(int place) = nullptr;
  void (*list_cores)(int place, int* cores) = nullptr;
  std::vector<Cores> places;
  if (!find("omp_get_num_places", count_places) || !find("omp_get_place_num_procs", count_cores) ||
      !find("omp_get_place_proc_ids", list_cores))
    return places;
  for (int place = 0; place < count_places(); ++place) {
    std::vector<int> numbers(as_size(std::max(count_cores(place), 0)));
    list_cores(place, numbers.data());
    Cores cores;
    CPU_ZERO(&cores);
    for (const int number : numbers)
      if (number >= 0 && number < CPU_SETSIZE) CPU_SET(as_size(number), &cores);
    places.push_back(cores);
  }
  return places;
}

PDP_INLINE Cores all_of(const std::vector<Cores>& places) {
  Cores all;
  CPU_ZERO(&all);
  for (const Cores& each : places) CPU_OR(&all, &all, &each);
  return all;
}

PDP_INLINE std::optional<Cores> share_of(const std::vector<Cores>& places, int rank, int ranks) {
  if (places.empty()) return std::nullopt;
  const auto count = places.size(), all = as_size(ranks), own = as_size(rank);
  const std::size_t begin = own * count / all, end = std::max(begin + 1, (own + 1) * count / all);
  return all_of({places.begin() + static_cast<std::ptrdiff_t>(begin), places.begin() + static_cast<std::ptrdiff_t>(end)});
}

PDP_INLINE std::optional<Cores> narrowed_by_openmp(const std::vector<Cores>& places) {
  Cores own;
  if (places.empty() || ::sched_getaffinity(0, sizeof own, &own) != 0) return std::nullopt;
  const Cores all = all_of(places);
  return CPU_COUNT(&own) < CPU_COUNT(&all) ? std::optional{own} : std::nullopt;
}

}  // namespace pdp::launch
